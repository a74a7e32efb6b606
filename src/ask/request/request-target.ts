import {
  assertNever,
  type Catalog,
  type ErrorName,
  type MentionedNames,
  type MetricsRequest,
  mentionedNames,
  QueryError,
} from 'osl-compiler';

/**
 * A query body of one of the three kinds in the REST contract, or a statement of the Postgres protocol (OSL-SQL or raw
 * SQL).
 */
export type QuestionBody =
  | { readonly kind: 'osql'; readonly text: string }
  | { readonly kind: 'sql'; readonly text: string }
  | { readonly kind: 'wire'; readonly text: string }
  | { readonly kind: 'metrics'; readonly request: MetricsRequest };

/** The query, object or text of a request, which is recorded in the audit log. */
export type RequestTarget = QuestionBody | SampledObject | RecordedText;

interface SampledObject {
  readonly kind: 'table' | 'facet';
  readonly name: string;
}

/** A text other than a query. As for a query, only its fingerprint is recorded. */
interface RecordedText {
  readonly kind: 'term' | 'draft';
  readonly text: string;
}

/** True unless `error` refused the request before it was read completely. */
export function wasRead(error: unknown): boolean {
  return !(error instanceof QueryError && UNREAD.has(error.entry));
}

/** Errors that refuse a request before it was read completely. */
const UNREAD: ReadonlySet<ErrorName> = new Set<ErrorName>([
  'rateLimited',
  'budgetSpent',
  'missingTask',
  'addressLimited',
  'tooLarge',
  'tooDeep',
  'noSnapshot',
]);

/** Maximum length of a refused text that is still parsed for the names it mentions, in UTF-16 code units. */
const LONGEST_READ = 65_536;

/** Returns the names that a request mentions, declared ones as full names. Empty for a text over `LONGEST_READ`. */
export function mentionedBy(asked: RequestTarget, catalog: Catalog): MentionedNames {
  if ('text' in asked && asked.text.length > LONGEST_READ) return { declared: [], undeclared: [] };
  switch (asked.kind) {
    case 'osql':
      return mentionedNames(asked.text, 'semantic', catalog);
    case 'sql':
      return mentionedNames(asked.text, 'physical', catalog);
    case 'wire':
      return mentionedNames(asked.text, 'either', catalog);
    case 'metrics':
      return sorted(asked.request.metrics.map((m) => [m.name, catalog.metrics.has(m.name), 'metrics']));
    case 'table':
      return sorted([[asked.name, catalog.relations.has(asked.name), 'entities']]);
    case 'facet':
      return sorted([[asked.name, catalog.facets.has(asked.name), 'facets']]);
    case 'term':
    case 'draft':
      return { declared: [], undeclared: [] };
    default:
      return assertNever(asked);
  }
}

function sorted(
  names: readonly (readonly [name: string, declared: boolean, room: string])[],
): MentionedNames {
  return {
    declared: names.flatMap(([name, is, room]) => (is ? [`osl.${room}.${name}`] : [])).sort(),
    undeclared: names.flatMap(([name, is]) => (is ? [] : [name])).sort(),
  };
}

/** Returns the text that identifies the target in fingerprints and receipts. */
export function statementOf(asked: RequestTarget): string {
  switch (asked.kind) {
    case 'osql':
    case 'sql':
    case 'term':
    case 'draft':
    case 'wire':
      return asked.text;
    case 'metrics':
      return JSON.stringify(asked.request);
    case 'table':
    case 'facet':
      return JSON.stringify([asked.kind, asked.name]);
    default:
      return assertNever(asked);
  }
}
