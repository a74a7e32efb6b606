import type { AnySchemaObject, ErrorObject, ValidateFunction } from 'ajv';
import { buildCheck, checkOf, type Dialect } from '../../../base/checks.js';
import { CODES, type Path, steps, suggestion, type UnplacedDiagnostic } from '../diagnostic.js';

const DIALECT: Dialect = {
  name: 'files',
  options: { allErrors: true, verbose: true, strict: true, allowUnionTypes: true, strictTypes: false },
  keywords: () => [],
};

/** Generates the code of the check, so that later processes can load it. */
export function buildShapeCheck(schema: AnySchemaObject): Promise<void> {
  return buildCheck(schema, DIALECT);
}

/** Returns a function that checks a value and returns its problems; an empty list means that the shape is valid. */
export function shapeCheck(schema: AnySchemaObject): (value: unknown) => readonly UnplacedDiagnostic[] {
  let validate: ValidateFunction | null = null;
  return (value) => {
    validate ??= checkOf(schema, DIALECT);
    if (validate(value)) return [];
    return (validate.errors ?? []).map(toProblem).filter((p) => p !== null);
  };
}

function toProblem(error: ErrorObject): UnplacedDiagnostic | null {
  // The `propertyNames` error reports a bad name with the rule that it violates, so nested errors are skipped.
  if (error.propertyName !== undefined) return null;
  const path = steps(error.instancePath);
  switch (error.keyword) {
    case 'additionalProperties':
      return unknownKey(path, `${error.params['additionalProperty']}`, propertiesOf(error));
    case 'required':
      return missingKey(path, `${error.params['missingProperty']}`);
    case 'propertyNames':
      return badKey(path, `${error.params['propertyName']}`, error);
    case 'type':
      return wrongType(path, error);
    default:
      return notAllowed(path, error);
  }
}

function unknownKey(path: Path, key: string, known: readonly string[]): UnplacedDiagnostic {
  const others = known.length === 0 ? null : `known here: ${known.join(', ')}`;
  return {
    path: [...path, key],
    onKey: true,
    code: CODES.unknownKey,
    message: `unknown key ${quoted(key)}`,
    hint: suggestion(key, known) ?? others,
  };
}

function missingKey(path: Path, key: string): UnplacedDiagnostic {
  return {
    path,
    onKey: true,
    code: CODES.missingKey,
    message: `${place(path)} has no \`${key}\``,
    hint: null,
  };
}

function badKey(path: Path, key: string, error: ErrorObject): UnplacedDiagnostic {
  return {
    path: [...path, key],
    onKey: true,
    code: CODES.badName,
    message: `${quoted(key)} cannot be a name here`,
    hint: descriptionOf(schemaMember(error, 'propertyNames')),
  };
}

const KINDS: ReadonlyMap<string, string> = new Map([
  ['object', 'a mapping'],
  ['array', 'a list'],
  ['string', 'text'],
  ['boolean', 'true or false'],
  ['number', 'a number'],
  ['integer', 'a whole number'],
  ['null', 'nothing'],
]);

function wrongType(path: Path, error: ErrorObject): UnplacedDiagnostic {
  const wanted = [error.params['type']].flat().map((t) => KINDS.get(`${t}`) ?? `${t}`);
  return {
    path,
    code: CODES.wrongType,
    message: `${place(path)} must be ${wanted.join(' or ')}, not ${kindOf(error.data)}`,
    hint: descriptionOf(error.parentSchema),
  };
}

function notAllowed(path: Path, error: ErrorObject): UnplacedDiagnostic {
  const choice = error.keyword === 'enum' ? texts(error.params['allowedValues']) : [];
  const near = typeof error.data === 'string' ? suggestion(error.data, choice) : null;
  return {
    path,
    code: error.keyword === 'pattern' ? CODES.badName : CODES.notAllowed,
    message: `${place(path)} ${refusal(error)}`,
    hint: near ?? descriptionOf(error.parentSchema),
  };
}

function refusal(error: ErrorObject): string {
  switch (error.keyword) {
    case 'enum':
      return `must be one of ${texts(error.params['allowedValues']).join(', ')}`;
    case 'const':
      return `must be ${JSON.stringify(error.params['allowedValue'])}`;
    case 'pattern':
      // The value may be a secret, which must appear neither on the terminal nor in a log.
      if (error.parentSchema?.['writeOnly'] === true) return 'does not have the required form';
      return `cannot be ${quoted(`${error.data}`)}`;
    case 'uniqueItems':
      return `names ${quoted(repeated(error))} twice`;
    case 'minItems':
    case 'minLength':
      return 'must not be empty';
    default:
      return error.message ?? 'is not allowed';
  }
}

function repeated(error: ErrorObject): string {
  const items: readonly unknown[] = Array.isArray(error.data) ? error.data : [];
  return `${items[Number(error.params['i'])]}`;
}

function propertiesOf(error: ErrorObject): readonly string[] {
  const properties = schemaMember(error, 'properties');
  return properties === null ? [] : Object.keys(properties);
}

function schemaMember(error: ErrorObject, member: string): object | null {
  const value: unknown = error.parentSchema?.[member];
  return typeof value === 'object' && value !== null ? value : null;
}

function descriptionOf(schema: object | null | undefined): string | null {
  if (schema === null || schema === undefined || !('description' in schema)) return null;
  return `${schema.description}`;
}

/** Describes a position to the author: the last name on the path, and the index if it is in a list. */
function place(path: Path): string {
  const last = path.at(-1);
  if (last === undefined) return 'the file';
  return quoted(/^\d+$/.test(`${last}`) && path.length > 1 ? `${path.at(-2)}[${last}]` : `${last}`);
}

function quoted(text: string): string {
  const short = text.length > 80 ? `${text.slice(0, 80)}…` : text;
  return `\`${short.replace(/[\u0000-\u001f\u007f-\u009f]/g, '\ufffd')}\``;
}

function texts(values: unknown): readonly string[] {
  return Array.isArray(values) ? values.map((v) => `${v}`) : [];
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'a mapping';
  if (typeof value === 'string') return 'text';
  return typeof value === 'boolean' ? 'true or false' : 'a number';
}
