export type AnswerLayout = 'json' | 'ndjson' | 'arrow';

export const ARROW_STREAM = 'application/vnd.apache.arrow.stream';

const NAMED: ReadonlyMap<string, AnswerLayout> = new Map([
  [ARROW_STREAM, 'arrow'],
  ['application/x-ndjson', 'ndjson'],
  ['application/json', 'json'],
  ['application/*', 'json'],
  ['*/*', 'json'],
]);

const ORDER: readonly AnswerLayout[] = ['arrow', 'ndjson', 'json'];

/**
 * Layout preferred by the `Accept` header (RFC 9110, 12.5.1). Arrow and NDJSON must be requested by name. If no
 * supported type is acceptable, the answer is JSON, as the RFC permits.
 */
export function layoutOf(accept: string | undefined): AnswerLayout {
  const weights = new Map<AnswerLayout, number>();
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

function weightOf(parameters: readonly string[]): number {
  const weight = parameters.find((parameter) => parameter.startsWith('q='));
  if (weight === undefined) return 1;
  return /^q=(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/.test(weight) ? Number(weight.slice(2)) : 0;
}
