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
export function readerOf<T>(shape: JsonShape<T>): (body: JsonFields) => T {
  shapes.push(shape);
  let check: ValidateFunction<T> | null = null;
  /** @throws QueryError E0511, which names fields and shows no values */
  return (body) => {
    check ??= checkOf<T>(shape, DIALECT);
    const read: unknown = body;
    if (check(read)) return read;
    throw faultOf(check.errors ?? []);
  };
}

type ChosenShape<A> = {
  readonly [K in keyof A]: { readonly kind: K; readonly read: ValueOf<A[K]> };
}[keyof A];

/**
 * Creates a reader for bodies that may have one of several shapes. A body has the shape whose name is one of its
 * members.
 *
 * @param mixed error for a body with more than one of these members; default E0511
 */
export function readerOfOne<A extends Readonly<Record<string, JsonShape>>>(
  shapes: A,
  mixed: (() => QueryError) | null = null,
): (body: JsonFields) => ChosenShape<A> {
  const all = Object.entries(shapes).map(([kind, shape]) => ({
    kind,
    members: membersOf(shape),
    read: readerOf(shape),
  }));
  /** @throws QueryError E0511, E0513 */
  return (body) => {
    const fields = Object.keys(body);
    const takes = new Map(fields.map((field) => [field, all.filter((one) => one.members.includes(field))]));
    const known = [...new Set(all.flatMap(({ members }) => members))];
    for (const [field, takers] of takes)
      if (takers.length === 0) throw noField(field, known).about(jsonPointer([field]));
    const [chosen, ...more] = all.filter(({ kind }) => takes.has(kind));
    if (chosen === undefined) throw malformed(`the body has none of ${namesOf(all).join(', ')}`);
    if (more.length > 0)
      throw mixed?.() ?? malformed(`the body has more than one of ${namesOf(all).join(', ')}`);
    for (const [field, takers] of takes) {
      if (!takers.includes(chosen))
        throw malformed(`\`${field}\` goes with ${namesOf(takers).join(' and ')} only`).about(
          jsonPointer([field]),
        );
    }
    return { kind: chosen.kind, read: chosen.read(body) } as ChosenShape<A>; // cast: validated against this member's shape
  };
}

function namesOf(shapes: readonly { readonly kind: string }[]): readonly string[] {
  return shapes.map(({ kind }) => `\`${kind}\``);
}

function membersOf(shape: JsonShape): readonly string[] {
  return Object.keys((shape['properties'] as object | undefined) ?? {});
}

function noField(name: string, known: readonly string[]): QueryError {
  return unknownName(`the body has no field ${shownName(name)}`, name, known);
}

function faultOf(errors: readonly ErrorObject[]): QueryError {
  const found = relevantErrors(errors);
  const [error] = found;
  if (error === undefined) throw new InternalError('a body was refused without a fault');
  const path = error.instancePath.split('/').slice(1).map(unescapeStep);
  const { params, propertyName: name = params['additionalProperty'] ?? params['missingProperty'] } = error;
  return messageOf(error, found, path).about(jsonPointer(name === undefined ? path : [...path, `${name}`]));
}

function messageOf(error: ErrorObject, found: readonly ErrorObject[], path: readonly string[]): QueryError {
  const place = placeOf(error.propertyName === undefined ? path : [...path, error.propertyName]);
  const { params, parentSchema = {} } = error;
  switch (error.keyword) {
    case 'additionalProperties': {
      const name = `${params['additionalProperty']}`;
      const known = membersOf(parentSchema);
      if (path.length === 0) return noField(name, known);
      return unknownName(`${place} has ${known.join(', ')} only`, name, known);
    }
    case 'required': {
      const inside = path.length === 0 ? '' : ` in ${place}`;
      return malformed(`\`${params['missingProperty']}\` is missing${inside}`);
    }
    case 'maxItems':
    case 'maxLength':
      return queryError('tooLarge', { what: `the length of ${place}`, limit: Number(params['limit']) });
    case 'minItems':
    case 'minLength':
    case 'minProperties':
      return malformed(`${place} must not be empty`);
    case 'enum':
      return malformed(`${place} must be ${choiceOf(params['allowedValues'])}`);
    case 'pattern':
      return malformed(
        `${place} is not ${parentSchema['title'] === undefined ? 'of its form' : `a ${parentSchema['title']}`}`,
      );
    default:
      return malformed(`${place} must be ${expectedTypes(found)}`);
  }
}

function relevantErrors(errors: readonly ErrorObject[]): readonly ErrorObject[] {
  const all = errors.filter(({ keyword }) => keyword !== 'anyOf' && keyword !== 'propertyNames');
  const depth = (error: ErrorObject): number => error.instancePath.split('/').length;
  const deepest = Math.max(...all.map(depth));
  const there = all.filter((error) => depth(error) === deepest);
  const telling = there.find(({ keyword }) => keyword !== 'type');
  return telling === undefined ? there : [telling];
}

function unescapeStep(step: string): string {
  return step.replaceAll('~1', '/').replaceAll('~0', '~');
}

const isIndex = (step: string | undefined): boolean => /^\d+$/.test(step ?? '');

function placeOf(path: readonly string[]): string {
  const [field, ...inner] = path;
  const last = inner.at(-1);
  if (field === undefined) return 'the body';
  if (last === undefined) return shownName(field);
  if (!isIndex(last)) return `${shownName(last)} in ${shownName(field)}`;
  return field === 'parameters' ? `parameter $${Number(last) + 1}` : `an entry of ${shownName(field)}`;
}

const KINDS: ReadonlyMap<unknown, string> = new Map([
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
    return [type].flat().flatMap((one) => {
      const kind = KINDS.get(one) ?? [];
      return one === 'integer' && minimum !== undefined ? `${kind} from ${minimum} to ${maximum}` : kind;
    });
  });
  return alternatives([...new Set(kinds)]);
}

function choiceOf(values: unknown): string {
  const texts = (Array.isArray(values) ? values : []).filter((v) => v !== null).map(String);
  return texts.length > 2 ? `one of ${texts.join(', ')}` : alternatives(texts);
}

function alternatives(texts: readonly string[]): string {
  return [texts.slice(0, -1).join(', '), texts.at(-1) ?? ''].filter((t) => t !== '').join(' or ');
}
