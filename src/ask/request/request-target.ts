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
const MAX_PARSED_LENGTH = 65_536;

/**
 * Returns the names that a request mentions, declared ones as full names. Empty for a text over `MAX_PARSED_LENGTH`.
 */
export function mentionedBy(target: RequestTarget, catalog: Catalog): MentionedNames {
  if ('text' in target && target.text.length > MAX_PARSED_LENGTH) return { declared: [], undeclared: [] };
  switch (target.kind) {
    case 'osql':
      return mentionedNames(target.text, 'semantic', catalog);
    case 'sql':
      return mentionedNames(target.text, 'physical', catalog);
    case 'wire':
      return mentionedNames(target.text, 'either', catalog);
    case 'metrics':
      return toMentionedNames(
        target.request.metrics.map((m) => [m.name, catalog.metrics.has(m.name), 'metrics']),
      );
    case 'table':
      return toMentionedNames([[target.name, catalog.relations.has(target.name), 'entities']]);
    case 'facet':
      return toMentionedNames([[target.name, catalog.facets.has(target.name), 'facets']]);
    case 'term':
    case 'draft':
      return { declared: [], undeclared: [] };
    default:
      return assertNever(target);
  }
}

function toMentionedNames(
  names: readonly (readonly [name: string, declared: boolean, room: string])[],
): MentionedNames {
  return {
    declared: names
      .flatMap(([name, isDeclared, namespace]) => (isDeclared ? [`osl.${namespace}.${name}`] : []))
      .sort(),
    undeclared: names.flatMap(([name, isDeclared]) => (isDeclared ? [] : [name])).sort(),
  };
}

/** Returns the text that identifies the target in fingerprints and receipts. */
export function statementOf(target: RequestTarget): string {
  switch (target.kind) {
    case 'osql':
    case 'sql':
    case 'term':
    case 'draft':
    case 'wire':
      return target.text;
    case 'metrics':
      return JSON.stringify(target.request);
    case 'table':
    case 'facet':
      return JSON.stringify([target.kind, target.name]);
    default:
      return assertNever(target);
  }
}
