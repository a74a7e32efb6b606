import { isObject } from '../../base/is-object.js';
import { CODES } from './codes.js';
import type { UnplacedDiagnostic } from './diagnostic.js';
import type { ConnectorDocument, ManifestDocument, NamedMembers } from './document.js';

/** Part of a manifest: any of its members; of a connector, only tables. */
export type FragmentDocument = Partial<Omit<ManifestDocument, 'connectors'>> & {
  readonly connectors?: NamedMembers<Partial<ConnectorDocument>>;
};

const SECTIONS = ['entities', 'relationships', 'bridges', 'facets', 'metrics', 'lexicon'] as const;

/** Faults of a fragment's outermost shape; the rest is checked in the combined manifest. */
export function fragmentProblems(value: unknown): readonly UnplacedDiagnostic[] {
  if (isObject(value)) return [];
  const hint = 'for example `entities: {…}`';
  return [{ path: [], code: CODES.wrongType, message: 'a fragment is a mapping', hint }];
}

/**
 * `base` with the members of `fragment`. An entity, a metric or a table replaces the whole one of its name; others
 * are kept. Members of the wrong shape are taken from the fragment, for the schema to refuse.
 */
export function withFragment(base: ManifestDocument, fragment: unknown): unknown {
  const given = isObject(fragment) ? fragment : {};
  const out = join(base as unknown as PlainDocument, given); // a document is plain data
  for (const section of SECTIONS) {
    const [old, added] = [base[section], given[section]];
    if (isObject(old) && isObject(added)) out[section] = join(old, added);
  }
  if (isObject(given['connectors'])) out['connectors'] = connectors(base, given['connectors']);
  return out;
}

function connectors(base: ManifestDocument, given: PlainDocument): PlainDocument {
  const known = base.connectors as unknown as PlainDocument; // as above
  const out = join(known, given);
  for (const [name, added] of Object.entries(given)) {
    const old = known[name];
    if (!isObject(old) || !isObject(added)) continue;
    const connector = join(old, added);
    const [tables, more] = [old['tables'], added['tables']];
    if (isObject(tables) && isObject(more)) connector['tables'] = join(tables, more);
    out[name] = connector;
  }
  return out;
}

export type PlainDocument = Record<string, unknown>;

/** Members of both; those of `over` replace equal names. Without a prototype, like documents. */
export function join(under: PlainDocument, over: PlainDocument): PlainDocument {
  return Object.assign(Object.create(null), under, over) as PlainDocument;
}
