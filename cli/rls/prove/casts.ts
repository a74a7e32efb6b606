import type { TypeName as TypeNode } from '@pgsql/types';
import { arrayElements, type TypeName, typeNamed } from 'osl-compiler';
import { castKey, type Encoder, literalKey, NULL_KEY } from '../../../policy/proof/index.js';
import { namesOf } from '../nodes.js';
import { NotUnderstood } from './scope.js';
import { type CallerTerm, literalTerm, NULL_TERM, type Term, truthLiteral, type ValueTerm } from './terms.js';

export interface CastContext {
  /** Names of enum types whose labels the model declares, such as `app.status`. */
  readonly enums: ReadonlySet<string>;
  /** Assumptions, in words, under which queries do not fail in the database; collected during translation. */
  readonly assumed: Set<string>;
}

interface TargetType {
  /** Null for a type that OSL-SQL does not have. */
  readonly type: TypeName | null;
  readonly name: string;
  readonly isList: boolean;
  /** True for a type with a length or a precision, such as `varchar(3)`. */
  readonly isLimited: boolean;
  readonly isEnum: boolean;
}

/** Casts that keep the value, as `from to`. */
const KEEPING: ReadonlySet<string> = new Set([
  ...['int2 int4', 'int2 int8', 'int4 int8', 'int2 numeric', 'int4 numeric', 'int8 numeric'],
  ...['float4 float8', 'uuid text'],
]);

const ZONED: ReadonlySet<TypeName> = new Set(['date', 'time', 'timestamp', 'timestamptz', 'text']);

/** True if a value is a point in time, or may be one. */
function isMoment({ type, literal }: ValueTerm): boolean {
  const isTime = type === 'date' || type === 'timestamp' || type === 'timestamptz';
  return isTime || (type === null && literal === null);
}

/**
 * Casts a term to another type.
 *
 * @throws NotUnderstood if the logic has no such cast, or if the cast depends on the time zone
 */
export function castTerm(
  inner: Term,
  target: TypeNode | undefined,
  { enums, assumed }: CastContext,
  encoder: Encoder,
): Term {
  const names = namesOf(target?.names).filter((name) => name !== 'pg_catalog');
  const name = names.join('.');
  const isList = (target?.arrayBounds ?? []).length > 0;
  const type = names.length === 1 ? typeNamed(name) : null;
  const isLimited = (target?.typmods ?? []).length > 0;
  switch (inner.kind) {
    case 'claims':
      return inner;
    case 'array':
      if (isLimited) throw new NotUnderstood(`a list as ${name} of limited length`);
      return { ...inner, items: inner.items.map((item) => castItem(item, type, encoder)) };
    case 'elements':
      if (type === null || isLimited || !isList) throw new NotUnderstood(`a list as ${name}`);
      return { ...inner, type };
    case 'truth':
      if (type === 'bool') return inner;
      throw new NotUnderstood(`a condition as ${name}`);
    case 'caller':
      if (type === null || isLimited || isList) throw new NotUnderstood(`a value of the caller as ${name}`);
      if (inner.type !== type && type !== 'text') assumed.add(`${inner.attribute} can be read as ${type}`);
      return castCaller(inner, type, encoder);
    case 'value':
      return castValue(inner, { type, name, isList, isLimited, isEnum: enums.has(name) }, encoder);
  }
}

function castValue(
  term: ValueTerm,
  { type, name, isList, isLimited, isEnum }: TargetType,
  encoder: Encoder,
): Term {
  if (term.key === NULL_KEY) return { ...term, type };
  if (isList && term.literal !== null && type !== null) {
    const items = arrayElements(term.literal);
    if (items !== null)
      return {
        kind: 'array',
        items: items.map((item) => (item === null ? NULL_TERM : literalTerm(item, type, encoder))),
        key: literalKey(term.literal, `${type}[]`),
      };
  }
  if (term.literal !== null && term.type === null && type !== null && !isList && !isLimited)
    return type === 'bool' ? truthLiteral(term.literal) : literalTerm(term.literal, type, encoder);
  // Enum labels count as text; other user-defined types may compare in another way.
  if (term.literal !== null && type === null && isEnum) return literalTerm(term.literal, 'text', encoder);
  if (type !== null && ZONED.has(type) && (term.type === null || term.type !== type) && isMoment(term))
    throw new NotUnderstood(`a cast to ${name} that depends on the time zone`);
  const target = isLimited || type === null || isList ? `${name}${isList ? '[]' : ''} limited` : type;
  const key = castKey(term.key, term.type, target);
  if (key === term.key) return { ...term, type };
  const column = type === 'text' ? term.column : null;
  if (KEEPING.has(`${term.type} ${target}`)) return { ...term, type, key, column };
  return {
    kind: 'value',
    value: { kind: 'opaque', isNull: term.value.isNull },
    type,
    key,
    column,
    literal: null,
  };
}

function castItem(item: Term, type: TypeName | null, encoder: Encoder): Term {
  if (item.kind !== 'value' || item.literal === null || type === null) return item;
  return item.type === null ? literalTerm(item.literal, type, encoder) : item;
}

/** Casts a setting or claim to another type. In types other than text, an empty text counts as NULL. */
function castCaller(term: CallerTerm, type: TypeName, encoder: Encoder): CallerTerm {
  if (term.type === type) return term;
  const isWider = KEEPING.has(`${term.type} ${type}`) && term.type !== 'uuid';
  if (term.type !== 'text' && !isWider)
    throw new NotUnderstood(`a value of the caller as ${term.type} and ${type}`);
  return {
    ...term,
    type,
    otherwise: castDefault(term.otherwise, type, encoder),
    key: castKey(term.key, term.type, type),
  };
}

function castDefault(
  term: CallerTerm['otherwise'],
  type: TypeName,
  encoder: Encoder,
): CallerTerm['otherwise'] {
  if (term === null || term.kind === 'truth') return term;
  // An empty text as the default cannot be cast, so no value is equal to it.
  if (term.literal === null || term.literal === '') return null;
  return type === 'bool' ? truthLiteral(term.literal) : literalTerm(term.literal, type, encoder);
}
