# SPDX-License-Identifier: MIT
# A job of the row "preload": allocates about a thousand objects that are garbage when it ends, runs code of a given
# number of the application's classes, and inserts a row in the database.
class WorkJob
  include Sidekiq::Job
  sidekiq_options retry: false

  CLASSES = Generated.constants.sort.map { |name| Generated.const_get(name) }

  def perform(number, classes)
    records = Array.new(100) { |i| { "id" => i, "name" => "record #{i} of #{number}", "tags" => ["a#{i}", "b#{number}"] } }
    names = JSON.parse(JSON.generate(records)).map { |record| record["name"] }
    random = Random.new(number)
    20.times { |i| CLASSES[random.rand(classes)].new.public_send("work_#{random.rand(25)}", names, b: { number => i }) }
    Run.note(number)
  end
end
