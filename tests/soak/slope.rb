# SPDX-License-Identifier: MIT
# Whether a series of samples grows. Pure functions. A sample is [hours, value].
module Slope
  POINTS = 60            # a longer series is reduced to this many medians
  ROUNDS = 200           # of the bootstrap
  CERTAINTY = 0.99       # one-sided

  # slope and lower (its lower bound): units per hour. late: the slope of the second half. word: :short, :flat or :grows.
  Verdict = Struct.new(:word, :samples, :hours, :median, :slope, :lower, :late, keyword_init: true)

  module_function

  def median(values)
    sorted = values.sort
    middle = sorted.size / 2
    sorted.size.odd? ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2.0
  end

  # Theil-Sen: the median of the slopes of all pairs. One third of the samples may be wrong.
  def theil_sen(points)
    slopes = []
    points.each_with_index do |(x, y), i|
      (i + 1...points.size).each do |j|
        run = points[j][0] - x
        slopes << (points[j][1] - y) / run if run.positive?
      end
    end
    slopes.empty? ? 0.0 : median(slopes)
  end

  # The medians of equal parts of the series.
  def thin(points, count = POINTS)
    return points if points.size <= count
    points.each_slice((points.size / count.to_f).ceil).map do |part|
      [median(part.map(&:first)), median(part.map(&:last))]
    end
  end

  # The bound that the slope exceeds with CERTAINTY. Resamples what the line leaves over, in blocks: neighbors are alike.
  def lower_bound(points, slope, seed)
    random = Random.new(seed)
    level = median(points.map { |x, y| y - slope * x })
    rests = points.map { |x, y| y - slope * x - level }
    length = [2 * Math.cbrt(points.size).round, points.size].min
    slopes = Array.new(ROUNDS) do
      drawn = []
      drawn.concat(rests[random.rand(points.size - length + 1), length]) while drawn.size < points.size
      theil_sen(points.each_with_index.map { |(x, _), i| [x, slope * x + drawn[i]] })
    end
    slopes.sort[((1 - CERTAINTY) * ROUNDS).floor]
  end

  # A series grows if its slope certainly exceeds the tolerance (units per hour), and that of its second half exceeds it
  # as well: memory that is allocated once, however late, is a step and no slope.
  def judge(samples, tolerance:, least: 20, seed: 1)
    hours = samples.size > 1 ? samples.last[0] - samples.first[0] : 0.0
    return Verdict.new(word: :short, samples: samples.size, hours: hours) if samples.size < least
    points = thin(samples)
    slope = theil_sen(points)
    late = theil_sen(points.last(points.size / 2))
    lower = slope > tolerance ? lower_bound(points, slope, seed) : slope
    word = slope > tolerance && lower > tolerance && late > tolerance ? :grows : :flat
    Verdict.new(word: word, samples: samples.size, hours: hours, median: median(samples.map(&:last)), slope: slope,
                lower: lower, late: late)
  end
end
