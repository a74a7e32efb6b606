import { isObject } from '../../base/is-object.js';
import { CODES } from './codes.js';
import type { UnplacedDiagnostic } from './diagnostic.js';
import type { ConnectorDocument, ManifestDocument, NamedMembers } from './document.js';

/** Part of a manifest: any of its members, and of a connector its tables alone. */
export type FragmentDocument = Partial<Omit<ManifestDocument, 'connectors'>> & {
  readonly connectors?: NamedMembers<Partial<ConnectorDocument>>;
};

/** Sections whose members are declared by name. */
const SECTIONS = ['entities', 'relationships', 'bridges', 'facets', 'metrics', 'lexicon'] as const;

/** Reason why a value cannot be put into a manifest; its shape is checked there. */
export function fragmentProblems(value: unknown): readonly UnplacedDiagnostic[] {
  if (isObject(value)) return [];
  const hint = 'for example `entities: {…}`';
  return [{ path: [], code: CODES.wrongType, message: 'a fragment is a mapping', hint }];
}

/**
 * `base` with the members of `fragment`. An entity, a metric, a table replaces the one of its name whole; what the
 * fragment does not name stays. Of what has the wrong shape the fragment's is taken, for the schema to refuse.
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

/** A document, or a part of one, as plain data. */
export type PlainDocument = Record<string, unknown>;

/** The members of both, those of `over` in the place of equal names; without a prototype, as documents are. */
export function join(under: PlainDocument, over: PlainDocument): PlainDocument {
  return Object.assign(Object.create(null), under, over) as PlainDocument;
}
