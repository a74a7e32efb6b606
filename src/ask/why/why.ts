import {
  type Access,
  assertNever,
  compile,
  InternalError,
  identifier,
  QueryError,
  queryError,
  type Relation,
} from 'osl-compiler';
import { isEmpty } from '../../../policy/index.js';
import {
  type CatalogName,
  objectName,
  objectNamed,
  readsOf,
  type Visibility,
  widestVisibility,
} from '../../model/graph/index.js';
import type { RequestCall } from '../request/call.js';
import { type Caller, type ServedVersions, versionsOf } from '../request/caller.js';
import type { RequestParts } from '../request/parts.js';
import { respond } from '../request/respond.js';

/** Visibility of an object for the caller, with reasons that reveal only the caller's own rights. */
export interface Why {
  readonly object: string;
  readonly sees: Exclude<Visibility, 'nothing'>;
  /**
   * Description of the content of masked cells; null if nothing is masked or no mask is declared for the column's
   * label.
   */
  readonly masked_as: string | null;
  readonly because: readonly string[];
  /** Opaque ids of the caller's grants. */
  readonly grants: readonly string[];
  readonly versions: ServedVersions;
}

/**
 * Explains to callers how they see an object and why, using only their own rights.
 *
 * @throws QueryError the error of a query for the object if the caller does not see it, and the errors of `respond`
 */
export function whyObject(parts: RequestParts, call: RequestCall, name: string): Promise<Why> {
  return respond<Why, Why>(parts, call, {
    action: 'why',
    target: { kind: 'term', text: name },
    bucket: 'query',
    requireAllowed: ({ access }) => {
      if (isEmpty(access)) throw queryError('noAccess', {});
    },
    decide: (caller, record) => {
      const why = whyOf(caller, objectNamed(name));
      record.setObjects({ form: null, objects: [why.object.split('.').slice(0, 3).join('.')] });
      return why;
    },
    answer: (why) => why,
  });
}

function whyOf(caller: Caller, object: CatalogName): Why {
  const { access, manifest, snapshot } = caller;
  const relation = manifest.catalog.relations.get(object.relation);
  const rights = access.relations.get(object.relation);
  const sight =
    relation === undefined ? 'nothing' : widestVisibility(relation, object.column, manifest.catalog, access);
  if (relation === undefined || rights === undefined || sight === 'nothing')
    throw unknownObjectError(caller, object);
  const column = [...relation.columns, ...(relation.computed ?? [])].find((c) => c.name === object.column);
  const label = column?.sensitivity ?? null;
  const isMasked = sight === 'masked' || sight === 'partly_masked';
  const mask = isMasked && label !== null ? (snapshot.masks.get(relation.name)?.get(label) ?? null) : null;
  const grants = grantsOn(relation, object.column, access);
  const isComputed = relation.computed?.some((c) => c.name === object.column) === true;
  return {
    object: objectName(relation, object.column),
    sees: sight,
    masked_as: mask === null ? null : SHOWN_AS[mask],
    because: [...becauseOf(sight, grants.length, isComputed), ...delegated(access.chainLength)],
    grants,
    versions: versionsOf(caller),
  };
}

/** Returns the ids of the grants that show the relation or, if given, one of its columns. */
function grantsOn(relation: Relation, column: string | null, { relations }: Access): readonly string[] {
  if (column === null) return relations.get(relation.name)?.grants.map(({ id }) => id) ?? [];
  const found = readsOf(relation, column).flatMap((read) =>
    (relations.get(read.relation)?.grants ?? []).filter(({ columns }) => columns.has(read.column)),
  );
  return [...new Set(found.map(({ id }) => id))];
}

const SHOWN_AS = {
  redact: '`[redacted]`, or NULL if it is not text',
  null: 'NULL',
  hash: 'a keyed hash: equal for equal values',
  partial: 'the first character and `***`',
  year: 'the beginning of its year',
  deny: 'nothing: it cannot be used',
} as const;

function becauseOf(
  sight: Exclude<Visibility, 'nothing'>,
  grants: number,
  isComputed: boolean,
): readonly string[] {
  const each = grants === 1 ? 'your grant' : `each of your ${grants} grants`;
  const what = isComputed ? 'it is computed from sensitive columns' : 'it is sensitive';
  switch (sight) {
    case 'clear':
      return ['your grant shows it unmasked in every row that you see'];
    case 'partly_masked':
      return [`${what}: unmasked in some of the rows that you see, masked in the others`];
    case 'masked':
      return [
        isComputed
          ? `${what}, of which you see only the masked values; filters, joins and groups use them too`
          : `${what}, and ${each} shows only its masked value; filters, joins and groups use the masked value too`,
      ];
    case 'aggregates':
      return [`${each} allows it in aggregates over large enough groups only, and shows no single row`];
    default:
      return assertNever(sight);
  }
}

function delegated(chainLength: number): readonly string[] {
  return chainLength > 1 ? ['you act for others: you see only what everybody in the chain may see'] : [];
}

/** Returns the error that a query for the object gives, so that a hidden object looks like one that does not exist. */
function unknownObjectError({ manifest, access }: Caller, { relation, column }: CatalogName): Error {
  const select = column === null ? 'count(*)' : identifier(column);
  try {
    compile(`select ${select} from osl.entities.${identifier(relation)}`, manifest.catalog, access);
  } catch (refusal) {
    if (!(refusal instanceof QueryError)) throw refusal;
    // The position would refer to a text that the caller did not write.
    return new QueryError(refusal.entry, refusal.message, { ...refusal, position: null });
  }
  return new InternalError(`a question for ${relation} is answered, and none of it is seen`);
}
