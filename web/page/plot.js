// False-positive rate against bits per key, with the chosen filters as points.
const plot = { curves: null, keys: null, rows: [], kind: 'blocked', width: 0 };
const MOST_BITS = 24, LEAST_LOG = -6;

function drawPlot() {
  if (!plot.curves || !plot.width) return;
  const width = plot.width, height = Math.round(Math.min(380, Math.max(260, width * 0.45)));
  const narrow = width < 560, left = 68, right = narrow ? 12 : 96, top = 8, bottom = 42;
  const x = bits => left + (bits - 2) / (MOST_BITS - 2) * (width - left - right);
  const y = log => top + log / LEAST_LOG * (height - top - bottom);
  const isInside = (bits, rate) =>
    bits >= 2 && bits <= MOST_BITS && rate > 0 && Math.log10(rate) >= LEAST_LOG;
  const svg = s('svg', {
    width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-labelledby': 'plot-title',
  });
  const labels = ['100 %', '10 %', '1 %', '0.1 %', '0.01 %', '0.001 %', '0.0001 %'];
  labels.forEach((label, at) => svg.append(
    s('line', { class: 'grid', x1: left, x2: x(MOST_BITS), y1: y(-at), y2: y(-at) }),
    s('text', { x: left - 8, y: y(-at) + 4, 'text-anchor': 'end' }, label)));
  for (let bits = 2; bits <= MOST_BITS; bits += narrow ? 4 : 2)
    svg.append(s('text', { x: x(bits), y: height - 22, 'text-anchor': 'middle' }, String(bits)));
  svg.append(s('text', { x: x(13), y: height - 3, 'text-anchor': 'middle' }, 'bits per key'));

  const ends = [];
  for (const [kind, points] of Object.entries(plot.curves)) {
    const seen = points.filter(([bits, rate]) => isInside(bits, rate));
    if (!seen.length) continue;
    svg.append(
      s('polyline', {
        class: `curve ${kind}`,
        points: seen
          .map(([bits, rate]) => `${x(bits).toFixed(1)},${y(Math.log10(rate)).toFixed(1)}`)
          .join(' '),
      }),
    );
    const [bits, rate] = seen[seen.length - 1];
    ends.push({ kind, x: x(bits), y: y(Math.log10(rate)) });
  }
  const chosen = plot.rows.find(row => row.kind === plot.kind);
  if (chosen && isInside(chosen.bits_per_key, chosen.rate)) {
    const [cx, cy] = [x(chosen.bits_per_key), y(Math.log10(chosen.rate))];
    svg.append(
      s('path', { class: 'cross', fill: 'none', d: `M${left} ${cy}H${cx}V${height - bottom}` }),
    );
  }
  // The chosen one last, on top.
  for (const row of [...plot.rows].sort((a, b) => (a === chosen) - (b === chosen))) {
    if (!isInside(row.bits_per_key, row.rate)) continue;
    const dot = {
      class: `dot ${row.kind}${row === chosen ? ' chosen' : ''}`, cx: x(row.bits_per_key),
      cy: y(Math.log10(row.rate)), r: row === chosen ? 6 : 4,
    };
    svg.append(s('circle', dot));
    if (row.kind === 'tags' && !narrow) ends.push({ kind: 'tags', x: dot.cx, y: dot.cy - 2 });
  }
  if (!narrow) {
    // Labels at the ends of the curves, pushed apart.
    ends.sort((a, b) => a.y - b.y);
    let last = -99;
    for (const end of ends) {
      const isAtEdge = end.x > x(MOST_BITS) - 12;
      const at = isAtEdge ? Math.max(end.y + 4, last + 15) : end.y + 4;
      if (isAtEdge) last = at;
      svg.append(
        s('text', { class: `label ${end.kind}`, x: end.x + 10, y: at }, KINDS[end.kind].name),
      );
    }
  }
  svg.addEventListener('click', event => {
    const box = svg.getBoundingClientRect();
    const bits = 2 + (event.clientX - box.left - left) / (width - left - right) * (MOST_BITS - 2);
    chooseBits(Math.min(MOST_BITS, Math.max(2, Math.round(2 * bits) / 2)));
  });
  const legend = h(
    'p', { class: 'legend' },
    ...plot.rows.map(({ kind }) => h('span', {}, swatchOf(kind), KINDS[kind].name)),
  );
  $('plot').replaceChildren(svg, ...(narrow ? [legend] : []));
}

new ResizeObserver(([entry]) => {
  const width = Math.floor(entry.contentRect.width);
  if (width !== plot.width) { plot.width = width; drawPlot(); }
}).observe($('plot'));
