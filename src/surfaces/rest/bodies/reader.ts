import type { ErrorObject, ValidateFunction } from 'ajv';
import { InternalError, type QueryError, queryError } from 'osl-compiler';
import { buildCheck, checkOf, type Dialect } from '../../../base/checks.js';
import { jsonPointer, malformed, shownName, unknownName } from '../problem.js';
import type { JsonShape, ValueOf } from '../shape.js';
import type { JsonFields } from './json.js';

const DIALECT: Dialect = {
  name: 'request bodies',
  options: {
    strict: true,
    strictTypes: false,
    allowUnionTypes: true,
    verbose: true,
    // Stop at the first error, so that a body with many errors costs no more than a body with one.
    allErrors: false,
    // The shapes are static, and a test validates the document that contains them.
    meta: false,
    validateSchema: false,
  },
  keywords: ({ _ }) => [
    {
      keyword: 'x-any-case',
      schemaType: 'boolean',
      before: 'enum',
      code: ({ gen, data, it: { parentData, parentDataProperty } }) => {
        gen.if(_`typeof ${data} == "string" && ${parentData}`, () => {
          gen.assign(data, _`${data}.toLowerCase()`);
          gen.assign(_`${parentData}[${parentDataProperty}]`, data);
        });
      },
    },
  ],
};

const shapes: JsonShape[] = [];

/** Precompiles the validators of all shapes that have a reader. */
export async function buildReaders(): Promise<void> {
  for (const shape of shapes) await buildCheck(shape, DIALECT);
}

/** Creates a reader for bodies of `shape`. The reader may modify the parsed body. */
export function bodyReader<T>(shape: JsonShape<T>): (body: JsonFields) => T {
  shapes.push(shape);
  let check: ValidateFunction<T> | null = null;
  /** @throws QueryError E0511, which names fields and shows no values */
  return (body) => {
    check ??= checkOf<T>(shape, DIALECT);
    const value: unknown = body;
    if (check(value)) return value;
    throw toBodyError(check.errors ?? []);
  };
}

type ChosenShape<A> = {
  readonly [K in keyof A]: { readonly kind: K; readonly members: ValueOf<A[K]> };
}[keyof A];

/**
 * Creates a reader for bodies that may have one of several shapes. A body has the shape whose name is one of its
 * members.
 *
 * @param mixedError error for a body with more than one of these members; default E0511
 */
export function oneOfReader<A extends Readonly<Record<string, JsonShape>>>(
  shapes: A,
  mixedError: (() => QueryError) | null = null,
): (body: JsonFields) => ChosenShape<A> {
  const all = Object.entries(shapes).map(([kind, shape]) => ({
    kind,
    members: membersOf(shape),
    read: bodyReader(shape),
  }));
  /** @throws QueryError E0511, E0513 */
  return (body) => {
    const fields = Object.keys(body);
    const shapesByField = new Map(
      fields.map((field) => [field, all.filter((shape) => shape.members.includes(field))]),
    );
    const known = [...new Set(all.flatMap(({ members }) => members))];
    for (const [field, matching] of shapesByField)
      if (matching.length === 0) throw unknownField(field, known).about(jsonPointer([field]));
    const [chosen, ...others] = all.filter(({ kind }) => shapesByField.has(kind));
    if (chosen === undefined) throw malformed(`the body has none of ${namesOf(all).join(', ')}`);
    if (others.length > 0)
      throw mixedError?.() ?? malformed(`the body has more than one of ${namesOf(all).join(', ')}`);
    for (const [field, matching] of shapesByField) {
      if (!matching.includes(chosen))
        throw malformed(`\`${field}\` goes with ${namesOf(matching).join(' and ')} only`).about(
          jsonPointer([field]),
        );
    }
    return { kind: chosen.kind, members: chosen.read(body) } as ChosenShape<A>; // cast: validated against this member's shape
  };
}

function namesOf(shapes: readonly { readonly kind: string }[]): readonly string[] {
  return shapes.map(({ kind }) => `\`${kind}\``);
}

function membersOf(shape: JsonShape): readonly string[] {
  return Object.keys((shape['properties'] as object | undefined) ?? {});
}

function unknownField(name: string, known: readonly string[], place = 'the body'): QueryError {
  return unknownName(`${place} has no field ${shownName(name)}`, name, known);
}

function toBodyError(errors: readonly ErrorObject[]): QueryError {
  const relevant = relevantErrors(errors);
  const [error] = relevant;
  if (error === undefined) throw new InternalError('a body was refused without a fault');
  const path = error.instancePath.split('/').slice(1).map(unescapeStep);
  const { params, propertyName: name = params['additionalProperty'] ?? params['missingProperty'] } = error;
  return errorFor(error, relevant, path).about(jsonPointer(name === undefined ? path : [...path, `${name}`]));
}

function errorFor(error: ErrorObject, relevant: readonly ErrorObject[], path: readonly string[]): QueryError {
  const location = describePath(error.propertyName === undefined ? path : [...path, error.propertyName]);
  const { params, parentSchema = {} } = error;
  switch (error.keyword) {
    case 'additionalProperties': {
      const place = path.length === 0 ? 'the body' : location;
      return unknownField(`${params['additionalProperty']}`, membersOf(parentSchema), place);
    }
    case 'required': {
      const inside = path.length === 0 ? '' : ` in ${location}`;
      return malformed(`\`${params['missingProperty']}\` is missing${inside}`);
    }
    case 'maxItems':
    case 'maxLength':
      return queryError('tooLarge', { what: `the length of ${location}`, limit: Number(params['limit']) });
    case 'minItems':
    case 'minLength':
    case 'minProperties':
      return malformed(`${location} must not be empty`);
    case 'enum':
      return malformed(`${location} must be ${describeChoice(params['allowedValues'])}`);
    case 'pattern':
      return malformed(
        `${location} is not ${parentSchema['title'] === undefined ? 'of its form' : `a ${parentSchema['title']}`}`,
      );
    default:
      return malformed(`${location} must be ${expectedTypes(relevant)}`);
  }
}

function relevantErrors(errors: readonly ErrorObject[]): readonly ErrorObject[] {
  const all = errors.filter(({ keyword }) => keyword !== 'anyOf' && keyword !== 'propertyNames');
  const depth = (error: ErrorObject): number => error.instancePath.split('/').length;
  const maxDepth = Math.max(...all.map(depth));
  const deepestErrors = all.filter((error) => depth(error) === maxDepth);
  const specific = deepestErrors.find(({ keyword }) => keyword !== 'type');
  return specific === undefined ? deepestErrors : [specific];
}

function unescapeStep(step: string): string {
  return step.replaceAll('~1', '/').replaceAll('~0', '~');
}

const isIndex = (step: string | undefined): boolean => /^\d+$/.test(step ?? '');

function describePath(path: readonly string[]): string {
  const [field, ...inner] = path;
  const last = inner.at(-1);
  if (field === undefined) return 'the body';
  if (last === undefined) return shownName(field);
  if (!isIndex(last)) return `${shownName(last)} in ${shownName(field)}`;
  return field === 'parameters' ? `parameter $${Number(last) + 1}` : `an entry of ${shownName(field)}`;
}

const TYPE_NAMES: ReadonlyMap<unknown, string> = new Map([
  ['string', 'a string'],
  ['number', 'a number'],
  ['integer', 'a whole number'],
  ['boolean', 'true or false'],
  ['array', 'an array'],
  ['object', 'an object'],
]);

function expectedTypes(errors: readonly ErrorObject[]): string {
  const kinds = errors.flatMap(({ parentSchema = {} }) => {
    const { type, minimum, maximum } = parentSchema;
    return [type].flat().flatMap((shape) => {
      const kind = TYPE_NAMES.get(shape) ?? [];
      return shape === 'integer' && minimum !== undefined ? `${kind} from ${minimum} to ${maximum}` : kind;
    });
  });
  return alternatives([...new Set(kinds)]);
}

function describeChoice(values: unknown): string {
  const texts = (Array.isArray(values) ? values : []).filter((v) => v !== null).map(String);
  return texts.length > 2 ? `one of ${texts.join(', ')}` : alternatives(texts);
}

function alternatives(texts: readonly string[]): string {
  return [texts.slice(0, -1).join(', '), texts.at(-1) ?? ''].filter((t) => t !== '').join(' or ');
}
