// The plots of a report, which Chart.js draws from the JSON in the page.
(function () {
  const parts = [['input_wait', 'input'], ['forward', 'forward'], ['backward', 'backward'],
    ['allreduce_exposed', 'allreduce'], ['straggler_wait', 'stragglers'], ['optimizer', 'optimizer'],
    ['other', 'other']];
  const devices = name => figures.series.some(s => s.name === name && s.devices);
  const onlyDevices = figures.series.every(s => s.devices);
  const anyDevices = figures.series.some(s => s.devices);
  const units = onlyDevices ? 'GPUs' : anyDevices ? 'CPUs or GPUs' : 'CPUs';
  const count = cell => `${cell.cpus} ${devices(cell.series) ? 'GPU' : 'CPU'}${cell.cpus === 1 ? '' : 's'}`;
  const named = cell => (figures.series.length > 1 ? cell.series + ', ' : '');
  // In weak scaling the threads of a rank belong to it: other threads are another global batch.
  const batchOf = cell => cell.batch_per_rank === undefined ? `${cell.batch}`
    : `${cell.batch_per_rank} per rank` + (cell.threads > 1 ? `, ${cell.threads} threads` : '');
  const strong = figures.cells.filter(c => c.batch_per_rank === undefined && c.seconds_per_epoch !== null);
  const weak = figures.cells.filter(c => c.batch_per_rank !== undefined && c.seconds_per_epoch !== null);
  const published = figures.reference ? figures.reference.cells.filter(c => c.seconds_per_epoch !== null) : [];
  const batches = unique([...strong, ...published].map(c => c.batch));
  const strongRows = batches.map(String);
  const weakRows = [...new Set([...weak]
    .sort((a, b) => a.batch_per_rank - b.batch_per_rank || a.threads - b.threads).map(batchOf))];

  // Batches by their colours and series by their dashes: as many keys as there are of both, and not their product.
  function groupedKeys(sets) {
    const mostKeys = 6;  // with one for each line
    if (sets.length <= mostKeys) return null;
    const first = (name, value) => sets.find(s => s[name] === value);
    const values = name => [...new Set(sets.map(s => s[name]).filter(value => value !== undefined))];
    const kinds = values('kind');
    return [
      ...values('batch').sort((a, b) => a - b).map(batch => ({ text: `batch ${batch}`, colour: first('batch', batch).borderColor,
        has: s => s.batch === batch })),
      ...(kinds.length < 2 ? [] : kinds.map(kind => ({ text: kind, colour: css('--soft'), dash: first('kind', kind).borderDash,
        has: s => s.kind === kind })))];
  }

  function draw(holder, title, config, keys, note, height) {
    return drawPlot(holder, { title, config, keys: keys || groupedKeys(config.data.datasets), note, height });
  }

  // --- lines over the number of CPUs

  const isForecast = cell => cell.status === 'simulated' || cell.status === 'predicted';

  // A line for every row of batches of every series; `y` makes a point of a cell, or nothing.
  function lines(cells, rows, y) {
    const sets = [];
    figures.series.forEach((series, s) => rows.forEach((batch, i) => {
      const data = cells.filter(c => c.series === series.name && batchOf(c) === batch && y(c) !== null)
        .map(c => ({ x: c.cpus, y: y(c), cell: c })).sort((a, b) => a.x - b.x);
      if (!data.length) return;
      const colour = at(colours, i), forecast = data.filter(p => isForecast(p.cell));
      sets.push({
        label: named(data[0].cell) + `batch ${batch}` + (forecast.length === data.length && !series.name.includes('simulated') ? `, ${data[0].cell.status}` : ''),
        batch, kind: series.name, data, borderColor: colour, backgroundColor: colour,
        // Hollow: simulated or predicted.
        pointBackgroundColor: data.map(p => isForecast(p.cell) ? css('--paper') : colour),
        borderDash: at(dashes, s), pointStyle: at(shapes, s), pointRadius: 4, borderWidth: forecast.length ? 1.5 : 2, clip: false,
      });
    }));
    return sets;
  }

  const place = (p, set) => p.cell ? `${named(p.cell)}${count(p.cell)}, batch ${batchOf(p.cell)}` : `${set.label}, ${p.x} CPUs`;
  const mark = status => status === 'measured' || !status ? '' : ` (${status})`;
  const markOfSpeedUp = cell => mark(cell.speed_up_status) + (cell.suspect ? ' (suspect)' : '');
  const over = sets => unique(sets.flatMap(s => s.data.map(p => p.x)));

  // What the time of each series' fewest CPUs would be on more of them, at the smallest batch that has it.
  function idealSeconds(cpus) {
    return figures.series.flatMap(series => {
      const own = strong.filter(c => c.series === series.name).sort((a, b) => a.cpus - b.cpus || a.batch - b.batch);
      if (!own.length || own.every(c => c.cpus === own[0].cpus)) return [];
      const [first] = own;
      return [{
        label: named(first) + 'ideal', kind: 'ideal', ideal: true, borderColor: css('--soft'),
        borderDash: at(dashes, figures.series.length + 1), borderWidth: 1.5,
        pointRadius: 0, pointHitRadius: 0,
        data: cpus.filter(x => x >= first.cpus).map(x => ({ x, y: first.seconds_per_epoch * first.cpus / x })),
      }];
    });
  }

  function seconds(holder) {
    const sets = lines(strong, strongRows, c => c.seconds_per_epoch);
    for (const set of sets) {
      for (const p of set.data) {
        if (p.cell.spread && p.cell.spread[1] > p.cell.spread[0]) p.range = p.cell.spread;
      }
    }
    for (const batch of unique(published.map(c => c.batch))) {
      const data = published.filter(c => c.batch === batch).map(c => ({ x: c.cpus, y: c.seconds_per_epoch }))
        .sort((a, b) => a.x - b.x);
      sets.push({ label: `published, batch ${batch}`, batch: String(batch), kind: 'published', data, borderColor: at(colours, batches.indexOf(batch)),
        borderDash: at(dashes, figures.series.length), borderWidth: 1, pointRadius: 3, pointStyle: 'crossRot', clip: false });
    }
    if (!sets.length) return null;
    const all = sets.flatMap(s => s.data.flatMap(p => p.range || [p.y]));
    const cpus = over(sets);
    sets.push(...idealSeconds(cpus));
    const forecast = [...new Set(sets.flatMap(s => s.data.filter(p => p.cell && isForecast(p.cell)).map(p => p.cell.status)))];
    const note = 'Logarithmic axes. ' + (sets.some(s => s.data.some(p => p.range)) ? 'Bars: least and most of the repeats. ' : '')
      + (forecast.length ? `Hollow points are ${forecast.join(' or ')}. ` : '')
      + (sets.some(s => s.ideal) ? `Ideal: the seconds of the fewest ${units}, divided among more.` : '');
    return draw(holder, 'Seconds per epoch', { type: 'line', data: { datasets: sets },
      options: lineOptions(logAxis(units, cpus, cpus), logAxis('time of an epoch (s)', all),
        (p, set) => `${place(p, set)}: ${short(p.y)} s` + (p.cell ? mark(p.cell.status) : '')) }, null, note);
  }

  function speedUp(holder) {
    const sets = lines(strong, strongRows, c => c.speed_up);
    if (!sets.length) return null;
    const cpus = over(sets), all = sets.flatMap(s => s.data.map(p => p.y));
    // A row is against its fewest CPUs, which are more than one where others could not run.
    const bases = unique(sets.map(s => s.data[0].x));
    const ideals = bases.map((base, i) => ({
      label: bases.length > 1 ? `ideal, against ${base}` : 'ideal', base, kind: bases.length > 1 ? `ideal, against ${base}` : 'ideal',
      data: cpus.filter(x => x >= base).map(x => ({ x, y: x / base })),
      borderColor: css('--soft'), borderDash: at([at(dashes, figures.series.length + 1), [1, 3], [8, 3], [12, 3, 2, 3]], i), borderWidth: 1.5, pointRadius: 0,
    }));
    const values = [...all, ...ideals.flatMap(s => s.data.map(p => p.y))];
    sets.unshift(...ideals);
    return draw(holder, 'Speed-up', { type: 'line', data: { datasets: sets },
      options: lineOptions(logAxis(units, cpus, cpus), logAxis('speed-up (times)', values),
        (p, set) => p.cell ? `${place(p, set)}: ${short(p.y)} times` + markOfSpeedUp(p.cell)
          : `${set.label}, on ${p.x}: ${short(p.y)} times`) }, null, 'Logarithmic axes.'
      + (bases.length > 1 ? ` Each batch has the ideal line of the fewest ${units} that it has a time of.` : ''));
  }

  function accuracyByCpus(holder) {
    return byData(strong.filter(c => c.val_accuracy !== null), dataOfCell).map(({ members, suffix }) => {
      const sets = lines(members, strongRows, c => c.val_accuracy);
      for (const p of sets.flatMap(s => s.data)) if (p.cell.val_accuracy_interval) p.range = p.cell.val_accuracy_interval;
      return draw(holder, 'Accuracy of validation' + suffix, { type: 'line', data: { datasets: sets }, options: lineOptions(
        logAxis(units, over(sets), over(sets)), accuracyAxis(sets),
        (p, set) => `${place(p, set)}: ${p.y.toFixed(4)}`) }, null, 'Bars: 95 % over the validation images.');
    });
  }

  function efficiencyOf(cells, rows, title, name) {
    return holder => {
      const sets = lines(cells, rows, c => c.efficiency === null ? null : 100 * c.efficiency);
      if (!sets.length) return null;
      const highest = Math.max(100, most(sets.flatMap(s => s.data.map(p => p.y))));
      return draw(holder, title, { type: 'line', data: { datasets: sets },
        options: lineOptions(logAxis(units, over(sets), over(sets)),
          axis(name, { min: 0, max: Math.ceil(highest / 20) * 20 }),
          (p, set) => `${place(p, set)}: ${p.y.toFixed(1)} %` + markOfSpeedUp(p.cell)) });
    };
  }

  // --- where the time goes

  function budget(holder) {
    const cells = [...strong, ...weak].filter(c => c.budget);
    if (!cells.length) return null;
    // Two lines where the window is small. Each label is the bar's own, even if two read alike.
    const labels = cells.map(c => {
      const text = `${c.cpus} · ${batchOf(c)}`;
      if (figures.series.length === 1) return [text];
      return small() ? [c.series.length > 18 ? c.series.slice(0, 17) + '…' : c.series, text] : [`${c.series}, ${text}`];
    });
    const sets = parts.map(([key, label], i) => ({
      label, backgroundColor: at(colours, i), borderColor: at(colours, i), barPercentage: 0.85, categoryPercentage: 0.9,
      data: cells.map((c, y) => ({ x: Math.max(0, 100 * c.budget[key] / c.seconds_per_epoch), y: labels[y], cell: c,
        seconds: c.budget[key] })),
    }));
    const lineHeight = figures.series.length > 1 && small() ? 2.4 : 1.5;
    return draw(holder, 'Where the time of an epoch goes', { type: 'bar', data: { labels, datasets: sets },
      options: { indexAxis: 'y', plugins: { tooltip: tooltip((p, set) =>
        `${place(p)}: ${set.label} ${short(p.seconds)} s, ${p.x.toFixed(1)} %` + mark(p.cell.status)) },
        scales: { x: axis('part of an epoch (%)', { stacked: true, min: 0, max: 100 }),
          y: axis(`${units} · batch`, { stacked: true, grid: { display: false },
            ticks: { color: css('--soft'), font: { size: small() ? 10 : 12 }, autoSkip: false } }) } } },
    sets.map(set => ({ text: set.label, colour: set.borderColor, block: true, has: other => other === set })), '',
    `${Math.max(9, 5 + lineHeight * cells.length)}rem`);
  }

  const plots = {
    'seconds': seconds, 'speed-up': speedUp, 'budget': budget,
    'efficiency': efficiencyOf(strong, strongRows, 'Efficiency', 'efficiency (%)'),
    'accuracy-by-cpus': accuracyByCpus,
    'weak': efficiencyOf(weak, weakRows, 'Weak scaling', 'weak efficiency (%)'),
    'loss': cellCurves('loss', 'Loss while training', 'loss (nats)', { units, batchOf, place }),
    'accuracy': cellCurves('accuracy', 'Accuracy while training', 'accuracy', { units, batchOf, place }),
    ...runPlots, ...tunePlots,
  };

  const charts = new Map();  // lists, by their places
  function redraw(holder) {
    for (const chart of charts.get(holder) || []) chart.destroy();
    holder.replaceChildren();
    try {
      const drawn = [].concat(plots[holder.dataset.plot](holder, () => redraw(holder)) || []);
      charts.set(holder, drawn);
      if (!drawn.length) holder.remove();
    } catch (error) {  // the others draw all the same
      const p = document.createElement('p');
      p.textContent = `This plot could not be drawn (${error.message}).`;
      holder.replaceChildren(p);
    }
  }
  function drawAll() {
    colours = darkness.matches ? onDark : onLight;
    document.querySelectorAll('[data-plot]').forEach(redraw);
  }
  Chart.defaults.font.family = 'system-ui, sans-serif';
  drawAll();
  darkness.addEventListener('change', drawAll);
}());
