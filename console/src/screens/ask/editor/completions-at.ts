import { identifier } from 'osl-compiler/sql-text';
import type { Schema } from '../../../../../clients/typescript/types.js';

export interface CompletionOffer {
  readonly label: string;
  readonly kind: 'entity' | 'column' | 'facet' | 'metric' | 'function' | 'form' | 'keyword' | 'alias';
  /** Short text shown next to the label, such as the type or the masking. */
  readonly detail: string;
  readonly info: string | null;
  /** Text to insert if it differs from the label. */
  readonly text?: string;
}

interface CompletionOffers {
  /** Offset at which the word to complete begins. */
  readonly from: number;
  readonly offers: readonly CompletionOffer[];
}

/** Keywords of OSL-SQL, for completion and highlighting. */
export const KEYWORDS: readonly string[] = `
  select distinct from where group by having order limit offset as on using join inner left right full
  cross lateral natural and or not in is like ilike between exists any all some case when then else
  end with recursive union intersect except asc desc nulls first last over partition rows range
  preceding following unbounded current row filter within interval date timestamp time cast extract
  array values rollup cube grouping sets window similar to escape only fetch next at zone
`
  .trim()
  .split(/\s+/);

type CompletionSchema = Pick<Schema, 'entities' | 'facets' | 'metrics' | 'relationships' | 'functions'>;

/** Completions at offset `at` of `text`, from the caller's own schema. Null if nothing can be completed there. */
export function completionsAt(text: string, at: number, schema: CompletionSchema): CompletionOffers | null {
  const before = text.slice(0, at);
  const facet = /\bfacet\s*=>\s*'([^']*)$/i.exec(before);
  if (facet !== null) return { from: at - (facet[1] ?? '').length, offers: facetOffers(schema) };
  const code = codeOf(before);
  if (!codeOf(`${before}x`).endsWith('x')) return null; // inside a string or a comment
  const word = /[\p{L}_][\p{L}\p{N}_$]*$/u.exec(code)?.[0] ?? '';
  const from = at - word.length;
  const lead = code.slice(0, from);
  const qualifier =
    /((?:[\p{L}_][\p{L}\p{N}_$]*|"[^"]*")(?:\s*\.\s*(?:[\p{L}_][\p{L}\p{N}_$]*|"[^"]*"))*)\s*\.\s*$/u.exec(
      lead,
    )?.[1];
  if (qualifier !== undefined) return { from, offers: qualified(qualifier, text, schema) };
  if (/\bmeasure\s*\(\s*$/i.test(lead)) return { from, offers: metricOffers(schema, '') };
  if (/\b(?:from|join)\s+$/i.test(lead)) return { from, offers: sourceOffers(schema) };
  if (word === '' && !/[\s(,]$/.test(lead)) return null;
  return { from, offers: anywhere(text, schema) };
}

function qualified(qualifier: string, text: string, schema: CompletionSchema): readonly CompletionOffer[] {
  const path = qualifier.split('.').map((name) => plain(name.trim()));
  const last = path.at(-1) ?? '';
  if (path.length === 1 && last === 'osl')
    return [{ label: 'entities', kind: 'keyword', detail: 'what there is to ask about', info: null }];
  if (last === 'entities') return entityOffers(schema, '');
  const entity = scopeOf(text).get(last) ?? last;
  return columnOffers(schema, entity, '');
}

function entityOffers(
  { entities, relationships }: CompletionSchema,
  prefix: string,
): readonly CompletionOffer[] {
  const bridges = relationships.flatMap(({ bridge, description }) =>
    bridge === null ? [] : [{ name: bridge.name, description, detail: 'bridge' }],
  );
  const all = [
    ...entities.map(({ name, description }) => ({ name, description, detail: 'entity' })),
    ...bridges,
  ];
  return all.map(({ name, description, detail }) => ({
    label: name,
    kind: 'entity',
    detail,
    info: description,
    text: `${prefix}${identifier(name)}`,
  }));
}

function sourceOffers(schema: CompletionSchema): readonly CompletionOffer[] {
  const forms: readonly CompletionOffer[] = [
    {
      label: 'RETRIEVE',
      kind: 'form',
      detail: 'passages of text',
      info: 'The best passages of a facet for a question in words.',
      text: "RETRIEVE(facet => '', query => '', top_k => 5)",
    },
    {
      label: 'TRAVERSE',
      kind: 'form',
      detail: 'a walk over links',
      info: 'What is linked with the rows of some keys, hop by hop.',
      text: "TRAVERSE(anchor => '', target => '', keys => (''))",
    },
  ];
  return [...entityOffers(schema, 'osl.entities.'), ...(schema.facets.length > 0 ? forms : forms.slice(1))];
}

function facetOffers({ facets }: CompletionSchema): readonly CompletionOffer[] {
  return facets.map(({ name, entity, description }) => ({
    label: name,
    kind: 'facet',
    detail: `text of ${entity}`,
    info: description,
  }));
}

function columnOffers(
  { entities, relationships }: CompletionSchema,
  entity: string,
  alias: string,
): readonly CompletionOffer[] {
  const found = entities.find(({ name }) => name === entity);
  const bridge = relationships.find((r) => r.bridge?.name === entity)?.bridge;
  const columns = found?.columns ?? bridge?.columns ?? [];
  const own = columns.map(
    ({ name, type, masked, use, description }): CompletionOffer => ({
      label: name,
      kind: 'column',
      detail: [
        type,
        masked === 'none' ? '' : masked === 'all' ? 'masked' : 'masked in some rows',
        use === 'rows' ? '' : 'in figures only',
      ]
        .filter((part) => part !== '')
        .join(' · '),
      info: description,
      text: `${alias}${identifier(name)}`,
    }),
  );
  const derived = (found?.derived ?? []).map(
    ({ name, type, description }): CompletionOffer => ({
      label: name,
      kind: 'column',
      detail: `${type} · from text`,
      info: description,
      text: `${alias}${identifier(name)}`,
    }),
  );
  return [...own, ...derived];
}

function metricOffers({ metrics }: CompletionSchema, around: 'measure' | ''): readonly CompletionOffer[] {
  return metrics
    .filter(({ measurable }) => measurable)
    .map(({ name, type, entity, description }) => ({
      label: name,
      kind: 'metric',
      detail: `metric · ${type}${entity === null ? '' : ` · ${entity}`}`,
      info: description,
      text: around === '' ? identifier(name) : `measure(${identifier(name)})`,
    }));
}

function anywhere(text: string, schema: CompletionSchema): readonly CompletionOffer[] {
  const scope: EntityAliases = scopeOf(text);
  const many = scope.size > 1;
  const columns = [...scope].flatMap(([alias, entity]) =>
    columnOffers(schema, entity, many ? `${identifier(alias)}.` : ''),
  );
  const aliases = many
    ? [...scope].map(
        ([alias, entity]): CompletionOffer => ({ label: alias, kind: 'alias', detail: entity, info: null }),
      )
    : [];
  const functions = schema.functions.map(
    ({ name, kind, signatures }): CompletionOffer => ({
      label: name,
      kind: 'function',
      detail: kind,
      info: signatures.slice(0, 4).join('\n'),
      text: `${name}(`,
    }),
  );
  const inScope = new Set(scope.values());
  const near = {
    ...schema,
    metrics: schema.metrics.filter((m) => scope.size === 0 || inScope.has(m.entity ?? '')),
  };
  const words = KEYWORDS.map(
    (label): CompletionOffer => ({ label, kind: 'keyword', detail: '', info: null }),
  );
  return [...columns, ...aliases, ...metricOffers(near, 'measure'), ...functions, ...words];
}

/** Entities in the FROM clause of a text, by their alias, or by their name if they have no alias. */
type EntityAliases = ReadonlyMap<string, string>;

const NAME = String.raw`"(?:[^"]|"")+"|[\p{L}_][\p{L}\p{N}_$]*`;
const ITEM = new RegExp(
  String.raw`\b(?:from|join)\s+(?:(?:osl\s*\.\s*)?entities\s*\.\s*)?(${NAME})(?!\s*\()(?:\s+(?:as\s+)?(${NAME}))?`,
  'giu',
);
const NO_ALIAS =
  /^(?:where|on|using|join|inner|left|right|full|cross|natural|group|order|having|limit|offset|union|intersect|except|window|fetch)$/i;

/** Blanks out strings and comments; offsets do not change. */
export function codeOf(text: string): string {
  return text.replace(/--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|'(?:[^']|'')*(?:'|$)/g, (part) =>
    part.replace(/[^\n]/g, ' '),
  );
}

/** Normalizes a name for comparison: unquotes a quoted name, converts any other name to lower case. */
function plain(name: string): string {
  return name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name.toLowerCase();
}

/** Returns entities by alias. The parsing is only good enough for completion; the gateway alone interprets queries. */
export function scopeOf(text: string): EntityAliases {
  const scope = new Map<string, string>();
  for (const [, entity = '', alias] of codeOf(text).matchAll(ITEM)) {
    const name = plain(entity);
    scope.set(alias === undefined || NO_ALIAS.test(alias) ? name : plain(alias), name);
  }
  return scope;
}
