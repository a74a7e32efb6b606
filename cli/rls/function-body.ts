import type { DatabaseFunction } from './catalog/catalog.js';
import { schemasOf } from './search-path.js';
import { type RelationName, relationsIn } from './statement.js';

/**
 * Relations that the body of a function names: of SQL by the grammar, of other languages by the words after FROM, JOIN,
 * INTO and UPDATE. Names without a schema are resolved in the function's own search_path, if it has a single schema.
 */
export function relationsOfFunction(called: DatabaseFunction): readonly RelationName[] {
  if (called.language === 'c' || called.language === 'internal') return [];
  const own = onlySchema(called.searchPath);
  return namesIn(called).map(({ schema, name }) => ({ schema: schema ?? own, name }));
}

function namesIn({ language, body, bound }: DatabaseFunction): readonly RelationName[] {
  // Only a body without BEGIN ATOMIC is a list of statements that the grammar knows.
  const parsed = language === 'sql' && !bound ? relationsIn(body) : null;
  return parsed ?? namesAfterKeywords(body);
}

/** Schema of a search_path such as `app, pg_temp`; null if there are several. */
function onlySchema(searchPath: string | null): string | null {
  const schemas = schemasOf(searchPath ?? '').filter((name) => !name.startsWith('pg_') && name !== '$user');
  return schemas.length === 1 ? (schemas[0] ?? null) : null;
}

const IGNORED = /--[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^']|'')*'/g;
const WORD = String.raw`(?:"(?:[^"]|"")+"|[A-Za-z_][\w$]*)`;
const NAMED = new RegExp(
  String.raw`\b(?:from|join|into|update|only)\s+(?:only\s+)?(?:(${WORD})\s*\.\s*)?(${WORD})`,
  'gi',
);

function namesAfterKeywords(body: string): readonly RelationName[] {
  return [...body.replace(IGNORED, ' ').matchAll(NAMED)].map(([, schema, name = '']) => ({
    schema: schema === undefined ? null : unquoted(schema),
    name: unquoted(name),
  }));
}

function unquoted(word: string): string {
  return word.startsWith('"') ? word.slice(1, -1).replaceAll('""', '"') : word.toLowerCase();
}

/** Settings that the body reads by a literal name. */
export function settingsOfFunction({ body }: DatabaseFunction): readonly string[] {
  return [...body.matchAll(/current_setting\s*\(\s*'([^']+)'/gi)].map(([, name = '']) => name);
}
