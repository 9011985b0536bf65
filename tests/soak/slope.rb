# SPDX-License-Identifier: MIT
# Whether a series of samples grows. Pure functions. A sample is [hours, value].
module Slope
  POINTS = 120      # a longer series is reduced to this many medians
  DEVIATIONS = 2.33 # the lower bound holds with a certainty of 99 %, one-sided

  # slope and lower (its lower bound): units per hour. late: the slope of the second half. word: :short, :flat or :grows.
  Verdict = Struct.new(:word, :samples, :hours, :median, :slope, :lower, :late, keyword_init: true)

  module_function

  def median(values)
    sorted = values.sort
    middle = sorted.size / 2
    sorted.size.odd? ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2.0
  end

  # The slopes of all pairs, sorted. Their median is the estimate of Theil and Sen: outliers hardly move it.
  def slopes(points)
    points.combination(2).filter_map { |(x, y), (x2, y2)| (y2 - y) / (x2 - x) if x2 > x }.sort
  end

  # The medians of equal parts of the series.
  def thin(points, count = POINTS)
    return points if points.size <= count
    points.each_slice((points.size / count.to_f).ceil).map do |part|
      [median(part.map(&:first)), median(part.map(&:last))]
    end
  end

  # The autocorrelation of what the line leaves over, from 0 to 0.9.
  def likeness(points, slope)
    level = median(points.map { |x, y| y - slope * x })
    left = points.map { |x, y| y - slope * x - level }
    square = left.sum { |rest| rest**2 }
    square.zero? ? 0.0 : (left.each_cons(2).sum { |one, after| one * after } / square).clamp(0.0, 0.9)
  end

  # Sen's lower bound, by the deviation of Mann-Kendall's statistic. Neighbors that are alike are worth less.
  def lower_bound(points, slopes)
    count = points.size
    alike = likeness(points, median(slopes))
    deviation = Math.sqrt(count * (count - 1) * (2 * count + 5) / 18.0 * (1 + alike) / (1 - alike))
    slopes[[(slopes.size - DEVIATIONS * deviation) / 2, 0].max.floor]
  end

  # A series grows if its slope certainly exceeds the tolerance (units per hour), and that of its second half exceeds it
  # as well: memory that is allocated once, however late, is a step and no slope.
  def judge(samples, tolerance:, least: 20)
    hours = samples.size > 1 ? samples.last[0] - samples.first[0] : 0.0
    return Verdict.new(word: :short, samples: samples.size, hours: hours) if samples.size < least
    points = thin(samples)
    all = slopes(points)
    lower = lower_bound(points, all)
    late = median(slopes(points.last(points.size / 2)))
    word = lower > tolerance && late > tolerance ? :grows : :flat
    Verdict.new(word: word, samples: samples.size, hours: hours, median: median(samples.map(&:last)), slope: median(all),
                lower: lower, late: late)
  end
end
