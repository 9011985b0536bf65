# SPDX-License-Identifier: MIT
# Loads a fleet's application once, and forks workers from it when sqmgr asks for them. sqmgr starts the fleet's command
# with this file in RUBYOPT, and with SQMGR_TEMPLATE=FD, the process's end of a socket. Sidekiq, Solid Queue or GoodJob boots
# the application as usual. Instead of running jobs, the process then serves as a template. Each message `fork` makes a
# worker, a child of sqmgr, which continues as if it had booted by itself.
#
# Runs before Bundler has chosen versions: requires nothing until one of them is loaded.
return unless ENV["SQMGR_TEMPLATE"]

module SqmgrPreload
  MESSAGE_MAX = 4096 # bytes
  FORK_SECONDS = 4 # less than the time limit of sqmgr, at least 5 s

  # Prepended to Sidekiq::CLI.
  module CLI
    def run(boot_app: true, **options)
      descriptor = SqmgrPreload.take_over
      # Define the event of sidekiqswarm: without an event :fork, Sidekiq refuses `config.on(:fork)`.
      (respond_to?(:config) ? config : Sidekiq.options)[:lifecycle_events][:fork] ||= []
      return super unless boot_app && descriptor

      boot_application
      SqmgrPreload.serve(descriptor)
      fire_event(:fork)
      # A warmup in each worker would copy the memory that the workers share.
      options[:warmup] = false if method(:run).super_method.parameters.include?(%i[key warmup])
      super(boot_app: false, **options)
    end
  end

  # Prepended to the class methods of SolidQueue::Supervisor: bin/jobs has loaded the application.
  module SolidQueueSupervisor
    def start(*arguments, **options)
      descriptor = SqmgrPreload.take_over
      SqmgrPreload.serve(descriptor) if descriptor
      super
    end
  end

  # Prepended to GoodJob::CLI. Rails reports each fork to GoodJob, which then names its process anew.
  module GoodJobCLI
    def set_up_application!
      descriptor = SqmgrPreload.take_over
      super
      SqmgrPreload.serve(descriptor) if descriptor
    end
  end

  # Each returns true once the class has the method that is to be prepended.
  HOOKS = {
    "Sidekiq::CLI" => lambda do |cli|
      cli.prepend(CLI) if cli.instance_method(:run).parameters.include?(%i[key boot_app])
      true
    end,
    "SolidQueue::Supervisor" => lambda do |supervisor|
      supervisor.singleton_method(:start) && supervisor.singleton_class.prepend(SolidQueueSupervisor)
    rescue NameError
      false # a part of the class in a file of its own
    end,
    "GoodJob::CLI" => ->(cli) { cli.method_defined?(:set_up_application!) && cli.prepend(GoodJobCLI) },
  }.freeze

  class << self
    def hook
      @outputs = [1, 2].to_h { |fd| [fd, file_of(fd)] }
      name = Module.instance_method(:name) # a class may have a `name` of its own
      TracePoint.new(:end) do |trace|
        hook = HOOKS[name.bind_call(trace.self)]
        trace.disable if hook&.call(trace.self)
      end.enable
    end

    # Makes this process the template: removes the variables and the option that are for the template alone, so that no
    # child inherits them. Returns the descriptor of the socket, or nil if a process before this one has closed it.
    def take_over
      descriptor = ENV["SQMGR_TEMPLATE"].to_i
      environments.each do |environment|
        environment.delete("SQMGR_TEMPLATE")
        leave_options(environment, "RUBYOPT", nil)
        leave_options(environment, "BUNDLER_ORIG_RUBYOPT", "BUNDLER_ENVIRONMENT_PRESERVER_INTENTIONALLY_NIL")
      end
      require "socket" # no gem; already loaded by Sidekiq
      channel = BasicSocket.for_fd(descriptor)
      channel.autoclose = false
      return unless channel.getsockopt(:SOCKET, :TYPE).int == Socket::SOCK_SEQPACKET

      channel.close_on_exec = true
      descriptor
    rescue SystemCallError, ArgumentError # Ruby may use that number for itself
      nil
    end

    # Returns in each worker once the worker may begin, and never in the template.
    def serve(descriptor)
      require "timeout"
      disconnect
      settle
      title = $0
      $0 = "sqmgr-template" # a title longer than the command line would overwrite the environment
      handlers = %w[INT TERM].to_h { |signal| [signal, trap(signal, "SYSTEM_DEFAULT")] }

      control = UNIXSocket.for_fd(descriptor)
      threads = (Thread.list - [Thread.current]).map { |thread| thread.name || thread.inspect }
      ready = ["ready", "version=1", *list("unsafe", open_sockets(descriptor)), *list("thread", threads)]
      Timeout.timeout(FORK_SECONDS) {} # may start its own thread, now that all threads are listed
      control.sendmsg(ready.join("\0")) rescue exit!(0)
      worker, words = fork_on_demand(control)
      control.close
      become_worker(worker, words)

      $0 = title
      handlers.each { |signal, handler| trap(signal, handler) }
    end

    private

    # Returns the environment, and the original one that Bundler keeps.
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

    # Closes connections that several processes would share. The pools open new ones.
    def disconnect
      if defined?(ConnectionPool)
        ObjectSpace.each_object(ConnectionPool) { |pool| pool.reload { |connection| connection.close rescue nil } }
      end
      return unless defined?(ActiveRecord::Base) && !ActiveRecord.autoload?(:Base)

      ObjectSpace.each_object(ActiveRecord::ConnectionAdapters::ConnectionPool, &:disconnect!)
    end

    # Prepares memory for sharing: collects garbage and makes live objects old, since workers share only unmodified
    # pages. Flushes output that each worker would otherwise write again.
    def settle
      if Process.respond_to?(:warmup) && !ENV["RUBY_DISABLE_WARMUP"]
        Process.warmup
      else
        GC.start
        3.times { GC.start(full_mark: false) }
      end
      ObjectSpace.each_object(IO) { |io| io.flush rescue nil }
    end

    # Limits number and length of the texts of one kind, so that they fit into a message.
    def list(kind, texts)
      more = texts.size > 16 ? ["#{kind}=#{texts.size - 16} more"] : []
      texts.first(16).map { |text| "#{kind}=#{text.b.tr("\0", "@")[0, 100]}" } + more
    end

    def open_sockets(own)
      Dir.children("/proc/self/fd").map(&:to_i).sort.filter_map do |fd|
        "socket #{fd}#{address_of(fd)}" if fd > 2 && fd != own && File.stat("/proc/self/fd/#{fd}").socket?
      rescue Errno::ENOENT
        nil # the descriptor that the directory was read by
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

    # Returns in each worker, with its socket and the words of its fork request.
    def fork_on_demand(control)
      loop do
        words, descriptors = receive(control)
        exit!(0) if words.empty? # sqmgr has exited, or has closed the socket
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

    # Returns true in the worker, and false in the template. The process in between exits at once, so the worker becomes
    # a child of sqmgr, a subreaper. Ruby repeats a fork that fails with EAGAIN every second without end: the timeout
    # limits that in the template, and the template then kills the process in between.
    def fork_twice(worker)
      template, between = Process.pid, nil
      Timeout.timeout(FORK_SECONDS, Errno::EAGAIN, "fork(2)") { (between = Process.fork) && Process.wait(between) }
      return false if between

      @between = Process.pid
      Process.fork ? exit!(0) : true
    rescue Errno::ECHILD
      false # another part of the application has waited for the process
    rescue StandardError => e
      # A thread that cannot be created means a lack of resources. Other errors come from fork hooks of the application.
      errno = e.is_a?(SystemCallError) ? e.errno : (e.is_a?(ThreadError) ? Errno::EAGAIN : Errno::ECANCELED)::Errno
      worker.sendmsg("error\0errno=#{errno}\0#{e.message.b[0, 1000]}") rescue nil
      exit!(1) unless Process.pid == template
      Process.kill(:KILL, between) && Process.wait(between) rescue nil if between
      false
    end

    # Turns the fork into a worker, which begins no work before sqmgr has recorded it and sent `go`.
    def become_worker(worker, words)
      Process.setsid
      marks = words.grep(/\ASQMGR_\w+=/)
      environments.each { |environment| marks.each { |mark| environment.store(*mark.split("=", 2)) } }
      overwrite_environment(marks)
      10_000.times { Process.ppid == @between ? sleep(0.001) : break } # until the worker is a child of sqmgr
      # Redirect before `hello`, upon which sqmgr opens the log for its tail.
      log = words.find { |word| word.start_with?("log=") }
      redirect(log.delete_prefix("log=")) if log
      worker.sendmsg("hello") rescue exit!(0)
      exit!(0) unless receive(worker).first == ["go"]
      worker.close
      forget_identity
    end

    # Writes the environment markers where /proc shows them: an sqmgr that has lost its state finds its workers by them.
    # The template was started with space reserved for them; a marker without enough space is left out.
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
      nil # sqmgr finds the worker by its state
    end

    # Opens the log for reading too, if permitted: sqmgr reads the log tail through the descriptor.
    def open_log(path)
      flags = File::APPEND | File::CREAT | File::NOCTTY
      File.open(path, flags | File::RDWR, 0o640)
    rescue Errno::EACCES
      File.open(path, flags | File::WRONLY, 0o640)
    end

    # Redirects the output to the log. Output that the application has redirected by itself stays as it is.
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
      nil # the output stays as inherited
    end

    def file_of(descriptor)
      stat = IO.for_fd(descriptor, autoclose: false).stat
      [stat.dev, stat.ino]
    rescue SystemCallError
      nil
    end

    # Returns a stream to the journal, as sd_journal_stream_fd(3) does.
    def journal
      stream = UNIXSocket.new("/run/systemd/journal/stdout")
      stream.shutdown(Socket::SHUT_RD)
      stream.write([ENV["SQMGR_WORKER"], "", 6, 1, 0, 0, 0, ""].join("\n"))
      stream
    end

    # Forgets what would be the same in each fork. Ruby reseeds random numbers by itself.
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
