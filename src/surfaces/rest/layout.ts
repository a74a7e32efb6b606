/** How an answer of rows is laid out. */
export type Layout = 'json' | 'ndjson' | 'arrow';

export const ARROW_STREAM = 'application/vnd.apache.arrow.stream';

/** By what a client may name; JSON is what others mean too. */
const NAMED: ReadonlyMap<string, Layout> = new Map([
  [ARROW_STREAM, 'arrow'],
  ['application/x-ndjson', 'ndjson'],
  ['application/json', 'json'],
  ['application/*', 'json'],
  ['*/*', 'json'],
]);

/** Of what a client likes equally, the first. */
const ORDER: readonly Layout[] = ['arrow', 'ndjson', 'json'];

/**
 * The layout that `accept` prefers by its weights (RFC 9110, 12.5.1). Arrow and NDJSON must be named; where nothing that
 * is served is acceptable the answer is JSON, which the same section allows.
 */
export function layoutOf(accept: string | undefined): Layout {
  const weights = new Map<Layout, number>();
  for (const range of (accept ?? '').toLowerCase().split(',')) {
    const [name = '', ...parameters] = range.split(';').map((part) => part.trim());
    const layout = NAMED.get(name);
    if (layout === undefined) continue;
    weights.set(layout, Math.max(weights.get(layout) ?? 0, weightOf(parameters)));
  }
  const best = Math.max(0, ...weights.values());
  if (best === 0) return 'json';
  return ORDER.find((layout) => weights.get(layout) === best) ?? 'json';
}

/** 1 where it is not said, 0 where it is no weight. */
function weightOf(parameters: readonly string[]): number {
  const said = parameters.find((parameter) => parameter.startsWith('q='));
  if (said === undefined) return 1;
  return /^q=(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/.test(said) ? Number(said.slice(2)) : 0;
}
