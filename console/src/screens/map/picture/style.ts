import type cytoscape from 'cytoscape';

interface Palette {
  readonly ground: string;
  readonly panel: string;
  readonly text: string;
  readonly quiet: string;
  readonly line: string;
  readonly accent: string;
  readonly masked: string;
}

/** Current page colours, read from a probe element in `frame` because a canvas cannot use custom properties. */
export function paletteOf(frame: Element): Palette {
  const probe = frame.appendChild(document.createElement('span'));
  const read = (name: string): string => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const palette = {
    ground: read('ground'),
    panel: read('panel'),
    text: read('text'),
    quiet: read('quiet'),
    line: read('line-strong'),
    accent: read('accent'),
    masked: read('masked'),
  };
  probe.remove();
  return palette;
}

/** Outline of a sheet of paper with a folded corner. */
const SHEET = '-1 -1 0.82 -1 1 -0.45 1 1 -1 1 -1 -1';

/**
 * Stylesheet of the picture. The shape of a node shows its kind; line styles and signs show differences between
 * callers. Colour is never the only distinction.
 */
export function styleOf(palette: Palette): cytoscape.StylesheetJson {
  const { ground, panel, text, quiet, line, accent, masked } = palette;
  return [
    {
      selector: 'node',
      style: {
        width: 'data(width)',
        height: 'data(height)',
        label: 'data(label)',
        color: text,
        'background-color': panel,
        'border-color': quiet,
        'border-width': 1.5,
        'font-size': 13,
        'font-family': 'system-ui, sans-serif',
        'text-valign': 'center',
        'text-halign': 'center',
        'min-zoomed-font-size': 5,
        shape: 'round-rectangle',
      },
    },
    {
      selector: 'node[kind="entity"]',
      style: { 'border-color': accent, 'border-width': 2, 'font-weight': 'bold' },
    },
    {
      selector: 'node[kind="bridge"]',
      style: {
        shape: 'diamond',
        'text-valign': 'bottom',
        'text-margin-y': 4,
        color: quiet,
        'background-color': ground,
      },
    },
    {
      selector: 'node[kind="facet"]',
      style: { shape: 'polygon', 'shape-polygon-points': SHEET, 'background-color': ground },
    },
    { selector: 'node[kind="metric"]', style: { shape: 'hexagon', 'background-color': ground } },
    {
      selector: 'node[kind="cluster"]',
      style: {
        shape: 'ellipse',
        'border-style': 'double',
        'border-width': 5,
        'border-color': accent,
        'text-wrap': 'wrap',
        'text-max-width': '110px',
      },
    },
    { selector: 'node[?deprecated]', style: { 'text-opacity': 0.65, 'border-style': 'dotted' } },
    {
      selector: 'edge',
      style: {
        width: 1.5,
        'line-color': line,
        'target-arrow-color': quiet,
        'source-arrow-color': quiet,
        'curve-style': 'bezier',
        label: 'data(label)',
        color: quiet,
        'font-size': 10,
        'min-zoomed-font-size': 8,
        'text-rotation': 'autorotate',
        'text-background-color': ground,
        'text-background-opacity': 0.85,
        'text-background-padding': '2px',
      },
    },
    { selector: 'edge[kind="to_one"]', style: { 'target-arrow-shape': 'triangle', 'line-color': quiet } },
    {
      selector: 'edge[kind="one_to_one"]',
      style: { 'target-arrow-shape': 'tee', 'source-arrow-shape': 'tee', 'line-color': quiet },
    },
    { selector: 'edge[kind="across"]', style: { 'line-color': quiet, label: '' } },
    { selector: 'edge[kind="text"]', style: { 'line-style': 'dotted' } },
    { selector: 'edge[kind="figure"]', style: { 'line-style': 'dashed' } },
    { selector: 'edge[kind="between"]', style: { width: 2 } },
    { selector: '.differs', style: { 'border-style': 'double', 'border-width': 6, 'border-color': masked } },
    { selector: '.own', style: { 'border-width': 4, 'border-color': masked } },
    { selector: 'edge.own', style: { width: 3, 'line-color': masked } },
    {
      selector: '.absent',
      style: {
        'border-style': 'dashed',
        'border-width': 1.5,
        'border-color': line,
        'background-opacity': 0,
        opacity: 0.6,
      },
    },
    { selector: 'edge.absent', style: { 'line-style': 'dashed', opacity: 0.35 } },
    {
      selector: '.near',
      style: { 'line-color': accent, 'target-arrow-color': accent, width: 2.5, label: 'data(name)' },
    },
    { selector: 'node.here', style: { 'outline-width': 3, 'outline-offset': 3, 'outline-color': accent } },
    { selector: 'node.open', style: { 'background-color': accent, 'background-opacity': 0.18 } },
    { selector: 'node:active', style: { 'overlay-opacity': 0.08, 'overlay-color': accent } },
  ];
}
