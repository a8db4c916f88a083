// What `tune` measured: images a second by micro-batch and by batch, and losses by learning rate.

const tunePlots = (() => {
  const tune = figures.tune || { ladders: [] };

  function ladder(flag, title) {
    return holder => {
      const found = tune.ladders.find(l => l.flag === flag);
      if (!found) return null;
      // A size's interval is that of its gain, around the speed of the size that it was compared with.
      const speed = value => found.rungs.find(r => r.value === value).images_per_second;
      const data = found.rungs.map(r => ({ x: r.value, y: r.images_per_second,
        ...(r.gain ? { range: r.gain.interval.map(part => speed(r.gain.over) * (1 + part)) } : {}) }))
        .sort((a, b) => a.x - b.x);
      const colour = at(colours, 0), values = data.map(p => p.x), top = most(data.flatMap(p => p.range || [p.y]));
      return drawPlot(holder, { title, config: { type: 'line',
        data: { datasets: [{ label: 'images/s', data, borderColor: colour, backgroundColor: colour, borderWidth: 2,
          pointRadius: 4, clip: false }] },
        options: lineOptions(logAxis(flag, values, values), axis('images/s', { suggestedMin: 0, suggestedMax: top }),
          p => `${flag} ${p.x}: ${short(p.y)} images/s`) },
      note: 'Logarithmic across. Bars: the interval of the gain over the size that it was compared with.' });
    };
  }

  // A vertical line, from the bottom to the top of the plot.
  function mark(x, label, top, dash) {
    return { label: `${label} ${short(x)}`, data: [{ x, y: 0 }, { x, y: top }], borderColor: css('--soft'),
      borderDash: dash, borderWidth: 1.5, pointRadius: 0, pointHitRadius: 0 };
  }

  function rate(holder) {
    const test = tune.rate;
    if (!test || !test.curve.length) return null;
    const points = key => test.curve.map(s => ({ x: s.rate, y: s[key] }));
    const top = 1.1 * most(test.curve.map(s => s.smoothed));
    const line = (label, key, i, more) => ({ label, data: points(key), borderColor: at(colours, i),
      backgroundColor: at(colours, i), borderWidth: 2, pointRadius: 0, pointHitRadius: 4, ...more });
    const datasets = [line('smoothed loss', 'smoothed', 0, {}),
      line('loss of each step', 'loss', 1, { showLine: false, borderWidth: 1, pointRadius: 2 })];
    if (test.advice) {
      datasets.push(mark(test.advice.rate, 'suggested:', top, [7, 4]),
        mark(test.advice.range[0], 'range from', top, [2, 3]), mark(test.advice.range[1], 'range to', top, [2, 3]));
    }
    return drawPlot(holder, { title: 'Loss by learning rate', height: '24rem', config: { type: 'line', data: { datasets },
      options: lineOptions(logAxis('learning rate', test.curve.map(s => s.rate)),
        axis('loss (nats)', { type: 'linear', min: 0, max: top }),
        (p, set) => `${set.label}: ${short(p.y)} at ${short(p.x)}`) },
    note: 'Logarithmic across. A step for each rate, one after another; higher losses are cut off.' });
  }

  return { 'tune-micro-batch': ladder('micro-batch', 'Images per second by micro-batch'),
    'tune-batch': ladder('batch', 'Images per second by batch'), 'tune-rate': rate };
})();
