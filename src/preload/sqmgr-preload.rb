# SPDX-License-Identifier: MIT
# Loads a fleet's application once, and forks its workers on the word of sqmgr, which starts the fleet's command with
# SQMGR_TEMPLATE=FD, its end of a channel, and with this file in RUBYOPT. Sidekiq boots the application as ever. Where
# it would begin to work, the process serves as a template instead: each `fork` makes a worker, a child of sqmgr, which
# goes on from there as if it had booted by itself.
#
# It runs before Bundler has chosen versions: nothing is required until Sidekiq is loaded.
return unless ENV["SQMGR_TEMPLATE"]

module SqmgrPreload
  MESSAGE_MAX = 4096 # bytes
  FORK_SECONDS = 4 # sqmgr gives it five

  # Prepended to Sidekiq::CLI.
  module CLI
    def run(boot_app: true, **options)
      descriptor = SqmgrPreload.take_over
      # sidekiqswarm has this event; where there is none `config.on(:fork)` is refused.
      (respond_to?(:config) ? config : Sidekiq.options)[:lifecycle_events][:fork] ||= []
      return super unless boot_app && descriptor

      boot_application
      SqmgrPreload.serve(descriptor)
      fire_event(:fork)
      # A warmup in each worker would undo what they share.
      options[:warmup] = false if method(:run).super_method.parameters.include?(%i[key warmup])
      super(boot_app: false, **options)
    end
  end

  class << self
    def hook
      @outputs = [1, 2].to_h { |fd| [fd, file_of(fd)] }
      name = Module.instance_method(:name) # a class may have a `name` of its own
      TracePoint.new(:end) do |trace|
        next unless name.bind_call(trace.self) == "Sidekiq::CLI"

        trace.disable
        trace.self.prepend(CLI) if trace.self.instance_method(:run).parameters.include?(%i[key boot_app])
      end.enable
    end

    # Whoever comes here is the one to serve: what is for it alone, no child of its inherits any more. Returns the
    # descriptor, or nil where something between sqmgr and here has closed it.
    def take_over
      descriptor = ENV["SQMGR_TEMPLATE"].to_i
      @compact = ENV["SQMGR_PRELOAD_COMPACT"] == "yes" && GC.respond_to?(:compact)
      environments.each do |environment|
        %w[SQMGR_TEMPLATE SQMGR_PRELOAD_COMPACT].each { |name| environment.delete(name) }
        leave_options(environment, "RUBYOPT", nil)
        leave_options(environment, "BUNDLER_ORIG_RUBYOPT", "BUNDLER_ENVIRONMENT_PRESERVER_INTENTIONALLY_NIL")
      end
      require "socket" # Sidekiq has it by now
      channel = BasicSocket.for_fd(descriptor)
      channel.autoclose = false
      return unless channel.getsockopt(:SOCKET, :TYPE).int == Socket::SOCK_SEQPACKET

      channel.close_on_exec = true
      descriptor
    rescue SystemCallError, ArgumentError # Ruby may have it for itself
      nil
    end

    # Returns in each worker, once it may begin; never in the template.
    def serve(descriptor)
      require "timeout"
      disconnect
      settle
      title = $0
      $0 = "sqmgr-template" # one longer than the command line would overwrite the environment
      handlers = %w[INT TERM].to_h { |signal| [signal, trap(signal, "SYSTEM_DEFAULT")] }

      control = UNIXSocket.for_fd(descriptor)
      threads = (Thread.list - [Thread.current]).map { |thread| thread.name || thread.inspect }
      ready = ["ready", "version=1", *list("unsafe", open_sockets(descriptor)), *list("thread", threads)]
      Timeout.timeout(FORK_SECONDS) {} # it may have a thread of its own from now on
      control.sendmsg(ready.join("\0")) rescue exit!(0)
      worker, words = fork_on_demand(control)
      control.close
      become_worker(worker, words)

      $0 = title
      handlers.each { |signal, handler| trap(signal, handler) }
    end

    private

    # Bundler keeps the environment as it was before.
    def environments
      defined?(Bundler::ORIGINAL_ENV) ? [ENV, Bundler::ORIGINAL_ENV] : [ENV]
    end

    def leave_options(environment, name, none)
      options = environment[name].to_s
      left = options.sub(/(?<!\S)-r#{Regexp.escape(__FILE__)}(\s+|\z)/, "")
      return if left == options

      left = left.strip.empty? ? none : left.rstrip
      left ? environment[name] = left : environment.delete(name)
    end

    # Closes connections that several processes would share. The pools make new ones.
    def disconnect
      if defined?(ConnectionPool)
        ObjectSpace.each_object(ConnectionPool) { |pool| pool.reload { |connection| connection.close rescue nil } }
      end
      return unless defined?(ActiveRecord::Base) && !ActiveRecord.autoload?(:Base)

      ObjectSpace.each_object(ActiveRecord::ConnectionAdapters::ConnectionPool, &:disconnect!)
    end

    # Workers share what they leave alone: garbage goes, and what lives is made old. What waits to be written each of
    # them would write.
    def settle
      if Process.respond_to?(:warmup) && !ENV["RUBY_DISABLE_WARMUP"]
        Process.warmup
      else
        GC.start
        3.times { GC.start(full_mark: false) }
      end
      GC.compact if @compact
      ObjectSpace.each_object(IO) { |io| io.flush rescue nil }
    end

    # Of each kind so few and so short that a message holds them.
    def list(kind, texts)
      more = texts.size > 16 ? ["#{kind}=#{texts.size - 16} more"] : []
      texts.first(16).map { |text| "#{kind}=#{text.b.tr("\0", "@")[0, 100]}" } + more
    end

    def open_sockets(own)
      Dir.children("/proc/self/fd").map(&:to_i).sort.filter_map do |fd|
        "socket #{fd}#{address_of(fd)}" if fd > 2 && fd != own && File.stat("/proc/self/fd/#{fd}").socket?
      rescue Errno::ENOENT
        nil # by it the directory was read
      end
    rescue SystemCallError => e
      ["open sockets cannot be listed: #{e.message}"]
    end

    def address_of(descriptor)
      socket = BasicSocket.for_fd(descriptor)
      socket.autoclose = false
      peer = socket.remote_address rescue nil
      peer ? " to #{peer.inspect_sockaddr}" : " at #{socket.local_address.inspect_sockaddr}"
    rescue SystemCallError, SocketError
      nil
    end

    # Returns in each worker, with its own socket and what it was told to be.
    def fork_on_demand(control)
      loop do
        words, descriptors = receive(control)
        exit!(0) if words.empty? # sqmgr is gone, or wants no more of us
        worker = descriptors.shift if words.shift == "fork"
        descriptors.each(&:close)
        return worker, words if worker && fork_twice(worker)

        worker&.close
      end
    end

    def receive(socket)
      message, _, _, *controls = socket.recvmsg(MESSAGE_MAX, scm_rights: true)
      [message.to_s.split("\0"), controls.flat_map { |control| control.unix_rights || [] }]
    rescue SystemCallError
      [[], []]
    end

    # True in the worker. The process between ends at once: what it has forked becomes a child of sqmgr, a subreaper.
    # Ruby tries a fork that fails with EAGAIN again each second, for good: here and, until it is killed, in between.
    def fork_twice(worker)
      template, between = Process.pid, nil
      Timeout.timeout(FORK_SECONDS, Errno::EAGAIN, "fork(2)") { (between = Process.fork) && Process.wait(between) }
      return false if between

      @between = Process.pid
      Process.fork ? exit!(0) : true
    rescue Errno::ECHILD
      false # somebody else has waited for it
    rescue StandardError => e
      # A thread that cannot be made is the machine's refusal, anything else that of one of the application's hooks.
      errno = e.is_a?(SystemCallError) ? e.errno : (e.is_a?(ThreadError) ? Errno::EAGAIN : Errno::ECANCELED)::Errno
      worker.sendmsg("error\0errno=#{errno}\0#{e.message.b[0, 1000]}") rescue nil
      exit!(1) unless Process.pid == template
      Process.kill(:KILL, between) && Process.wait(between) rescue nil if between
      false
    end

    # It has done nothing before sqmgr has written down that it lives.
    def become_worker(worker, words)
      Process.setsid
      marks = words.grep(/\ASQMGR_\w+=/)
      environments.each { |environment| marks.each { |mark| environment.store(*mark.split("=", 2)) } }
      overwrite_environment(marks)
      10_000.times { Process.ppid == @between ? sleep(0.001) : break } # then it is a child of sqmgr
      # By then it writes where its last lines are looked for.
      log = words.find { |word| word.start_with?("log=") }
      redirect(log.delete_prefix("log=")) if log
      worker.sendmsg("hello") rescue exit!(0)
      exit!(0) unless receive(worker).first == ["go"]
      worker.close
      forget_identity
    end

    # By what the kernel shows, an sqmgr without a state finds its workers again. The template was started with room
    # there; a mark that finds none is left out.
    def overwrite_environment(marks)
      from, to = File.read("/proc/self/stat").rpartition(")").last.split.values_at(47, 48).map(&:to_i)
      File.open("/proc/self/mem", "r+b") do |memory|
        memory.sysseek(from)
        memory.sysread(to - from).split("\0", -1).each do |entry|
          mark = marks.find { |one| entry.start_with?(one[/\A\w+=/]) }
          if mark && mark.bytesize <= entry.bytesize
            memory.sysseek(from)
            memory.syswrite(mark.ljust(entry.bytesize, "\0"))
          end
          from += entry.bytesize + 1
        end
      end
    rescue SystemCallError, IOError
      nil # the state has it
    end

    # Its last lines are read back by what it writes them with.
    def open_log(path)
      flags = File::APPEND | File::CREAT | File::NOCTTY
      File.open(path, flags | File::RDWR, 0o640)
    rescue Errno::EACCES
      File.open(path, flags | File::WRONLY, 0o640)
    end

    # What the application has turned elsewhere by itself stays there.
    def redirect(log)
      target = log == "journal" ? journal : open_log(log)
      @outputs.each do |fd, file|
        next unless file && file == file_of(fd)

        output = IO.for_fd(fd, autoclose: false)
        output.reopen(target)
        output.autoclose = false
      end
      target.close
    rescue SystemCallError
      nil # as inherited
    end

    def file_of(descriptor)
      stat = IO.for_fd(descriptor, autoclose: false).stat
      [stat.dev, stat.ino]
    rescue SystemCallError
      nil
    end

    # As sd_journal_stream_fd(3) does.
    def journal
      stream = UNIXSocket.new("/run/systemd/journal/stdout")
      stream.shutdown(Socket::SHUT_RD)
      stream.write([ENV["SQMGR_WORKER"], "", 6, 1, 0, 0, 0, ""].join("\n"))
      stream
    end

    # What would be the same in each fork. Random numbers begin anew by themselves.
    def forget_identity
      [defined?(Sidekiq::Component) && Sidekiq::Component, defined?(Sidekiq::Util) && Sidekiq::Util].each do |owner|
        %i[@@process_nonce @@identity].each do |name|
          owner.remove_class_variable(name) if owner && owner.class_variable_defined?(name)
        end
      end
      Thread.current["sidekiq_tid"] = nil
    end
  end
end

SqmgrPreload.hook
