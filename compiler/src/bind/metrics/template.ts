import { type Grain, grainNamed } from '../../catalog/grain.js';
import { queryError } from '../../errors/errors.js';

/** What stands for a name in the text of a predicate. The grammar has these four and no more. */
export type Builder =
  | { readonly kind: 'dimension' | 'entity' | 'metric'; readonly name: string }
  | { readonly kind: 'time'; readonly name: string; readonly grain: Grain | null };

/** A predicate with its builders taken out: `"{{n}}"` stands for `builders[n]`, and no caller can write that. */
export interface Template {
  readonly sql: string;
  readonly builders: readonly Builder[];
}

const NAME = `(?:'([A-Za-z0-9_]{1,200})'|"([A-Za-z0-9_]{1,200})")`;
const BUILDER = new RegExp(
  `\\{\\{\\s*(Dimension|TimeDimension|Entity|Metric)\\s*\\(\\s*${NAME}\\s*(?:,\\s*${NAME}\\s*)?\\)\\s*\\}\\}`,
  'y',
);

const KINDS = { Dimension: 'dimension', Entity: 'entity', Metric: 'metric' } as const;

/**
 * Takes the builders out of `text`: `{{ Dimension('customer__region') }}`, `{{ TimeDimension('metric_time', 'day') }}`,
 * `{{ Entity('customer') }}`, `{{ Metric('revenue') }}`.
 *
 * @throws QueryError E0511 for anything else between double braces
 */
export function parseTemplate(text: string): Template {
  const builders: Builder[] = [];
  let sql = '';
  let at = 0;
  for (let open = text.indexOf('{{'); open >= 0; open = text.indexOf('{{', at)) {
    BUILDER.lastIndex = open;
    const match = BUILDER.exec(text);
    const builder = match === null ? null : builderOf(match);
    if (builder === null) throw malformedTemplate();
    sql += `${text.slice(at, open)}"{{${builders.length}}}"`;
    builders.push(builder);
    at = BUILDER.lastIndex;
  }
  return { sql: sql + text.slice(at), builders };
}

/** The builder that the parsed name `"{{n}}"` stands for. */
export function builderAt(name: string, { builders }: Template): number | null {
  const [, digits] = /^\{\{(\d+)\}\}$/.exec(name) ?? [];
  const index = Number(digits);
  return builders[index] === undefined ? null : index;
}

function builderOf(match: RegExpExecArray): Builder | null {
  const [, word, single, double, singleGrain, doubleGrain] = match;
  const name = single ?? double ?? '';
  const written = singleGrain ?? doubleGrain ?? null;
  if (word === 'TimeDimension') {
    const grain = written === null ? null : grainNamed(written);
    return written !== null && grain === null ? null : { kind: 'time', name, grain };
  }
  if (written !== null || (word !== 'Dimension' && word !== 'Entity' && word !== 'Metric')) return null;
  return { kind: KINDS[word], name };
}

function malformedTemplate() {
  return queryError('unsupported', {
    construct: 'what stands between `{{` and `}}`',
    hint: "write {{ Dimension('…') }}, {{ TimeDimension('…', 'day') }}, {{ Entity('…') }} or {{ Metric('…') }}",
  });
}
