import { readFileSync } from 'node:fs';
import { parse, YAMLError } from 'yaml';
import { systemFault, usage } from '../../exit.js';
import type { CallerAttribute } from '../import/attributes.js';

/** A caller, as the database knows it: by the role and the settings of its session. */
export interface ComparedCaller {
  readonly name: string;
  /** The database role. */
  readonly role: string;
  readonly settings: Readonly<Record<string, string>>;
  /** Claims of the token, which the database gets in `request.jwt.claims`. */
  readonly claims: Readonly<Record<string, unknown>>;
}

const FORM = 'a list of callers, each with `role`, and `settings` and `claims` as mappings';

/** Reads callers from a YAML file. @throws Failure */
export function callersIn(file: string): readonly ComparedCaller[] {
  const found = read(file);
  if (!Array.isArray(found) || found.length === 0) throw usage(`${file} must be ${FORM}`);
  return found.map((entry: unknown, i) => callerOf(entry, i, file));
}

function read(file: string): unknown {
  try {
    return parse(readFileSync(file, 'utf8'));
  } catch (error) {
    if (error instanceof YAMLError) throw usage(`${file}: ${error.message}`);
    throw usage(systemFault(error) ?? `${file} cannot be read`);
  }
}

function callerOf(entry: unknown, index: number, file: string): ComparedCaller {
  const { name = `caller ${index + 1}`, role, settings = {}, claims = {}, ...rest } = mapping(entry, file);
  const [unknown] = Object.keys(rest);
  if (typeof role !== 'string' || typeof name !== 'string' || unknown !== undefined)
    throw usage(`${file} must be ${FORM}`);
  const texts = Object.entries(mapping(settings, file)).map(([key, value]) => [key, String(value)] as const);
  return { name, role, settings: Object.fromEntries(texts), claims: mapping(claims, file) };
}

function mapping(value: unknown, file: string): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw usage(`${file} must be ${FORM}`);
  return { ...value };
}

/** Settings of the session, with the claims as PostgREST and hosted services pass them. */
export function sessionSettings({ settings, claims }: ComparedCaller): ReadonlyMap<string, string> {
  const all = new Map(Object.entries(settings));
  if (Object.keys(claims).length === 0) return all;
  all.set('request.jwt.claims', JSON.stringify(claims));
  for (const [name, value] of Object.entries(claims))
    all.set(`request.jwt.claim.${name}`, typeof value === 'string' ? value : JSON.stringify(value));
  return all;
}

/** The attributes of the caller in the policy. A value that the caller does not have is no attribute. */
export function attributesOfCaller(
  caller: ComparedCaller,
  attributes: readonly CallerAttribute[],
): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    attributes.flatMap(({ name, source, list }) => {
      const value = callerValue(caller, source);
      if (value === undefined || value === null || value === '') return [];
      return [[name, list && typeof value === 'string' ? value.replace(/^\{|\}$/g, '').split(',') : value]];
    }),
  );
}

function callerValue(caller: ComparedCaller, source: CallerAttribute['source']): unknown {
  switch (source.kind) {
    case 'setting':
      return caller.settings[source.name];
    case 'claim':
      return source.path.reduce<unknown>(
        (at, key) =>
          typeof at === 'object' && at !== null ? new Map(Object.entries(at)).get(key) : undefined,
        caller.claims,
      );
    case 'database user':
      return caller.role;
  }
}
