# SPDX-License-Identifier: MIT
# Keeps compiled code of installed libraries in a folder: to compile it is almost half of the start of Sidekiq.
class RubyVM::InstructionSequence
  def self.load_iseq(path)
    return unless path.start_with?("/usr/", "/var/lib/gems/") && ENV["SQMGR_RUBY_CACHE"]
    name = "#{File.mtime(path).to_i}#{path.tr("/", "%")}"
    kept = File.join(ENV["SQMGR_RUBY_CACHE"], name)
    return load_from_binary(File.binread(kept)) if File.exist?(kept)
    return unless File.writable?(ENV["SQMGR_RUBY_CACHE"])
    compiled = compile_file(path)
    File.binwrite("#{kept}.#{$$}", compiled.to_binary)
    File.rename("#{kept}.#{$$}", kept)
    compiled
  rescue SystemCallError, RuntimeError, SyntaxError
    nil
  end
end
