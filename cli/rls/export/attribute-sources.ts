import { readFileSync } from 'node:fs';
import { quoteLiteral } from 'osl-compiler';
import { parse } from 'yaml';
import type { PolicyDocument } from '../../../policy/document.js';
import { usage } from '../../exit.js';
import { fieldsOf, membersOf } from '../../output.js';
import type { CallerAttribute } from '../import/caller-value.js';
import { type CallerSource, sourceFrom } from '../import/caller-value.js';

/** Default source of attributes: token claims in `request.jwt.claims`, or settings named `app.<name>`. */
export type SettingsForm = 'claims' | 'app';

/**
 * Sources of the callers' attributes: the source stated explicitly, otherwise the claim in an exchange rule of the
 * policy, otherwise the default. An attribute is a list if that is stated, or if a subject of the policy has a list for
 * it.
 */
export class AttributeSources {
  readonly #stated: ReadonlyMap<string, CallerAttribute>;
  readonly #document: PolicyDocument;
  readonly #form: SettingsForm;
  readonly #used = new Map<string, CallerAttribute>();

  constructor(document: PolicyDocument, stated: readonly CallerAttribute[], form: SettingsForm) {
    this.#stated = new Map(stated.map((one) => [one.name, one]));
    this.#document = document;
    this.#form = form;
  }

  /** Attributes that were looked up so far. */
  get used(): readonly CallerAttribute[] {
    return [...this.#used.values()];
  }

  /** The attribute and its source. @throws Inexpressible if the source is a setting with an invalid name */
  of(name: string): CallerAttribute {
    const found = this.#used.get(name) ?? this.#stated.get(name) ?? this.#byPolicy(name);
    if (found.source.kind === 'setting' && !SETTING_NAME.test(found.source.name))
      throw new Inexpressible(`attribute \`${name}\`: no setting can be called \`${found.source.name}\``);
    this.#used.set(name, found);
    return found;
  }

  #byPolicy(name: string): CallerAttribute {
    const { subjects, exchange = [] } = this.#document;
    const list = Object.values(subjects).some(({ attributes }) => Array.isArray(attributes?.[name]));
    for (const { attributes } of exchange) {
      const { claim } = fieldsOf(attributes?.[name]);
      if (typeof claim === 'string') return { name, source: { kind: 'claim', path: pathOf(claim) }, list };
    }
    const source: CallerSource =
      this.#form === 'claims' ? { kind: 'claim', path: [name] } : { kind: 'setting', name: `app.${name}` };
    return { name, source, list };
  }
}

const SETTING_NAME = /^[a-z_][a-z0-9_$]*(\.[a-z_][a-z0-9_$]*)+$/i;

/** Splits a claim, which is a name or a JSON pointer, into keys. */
function pathOf(claim: string): readonly string[] {
  if (!claim.startsWith('/')) return [claim];
  return claim
    .slice(1)
    .split('/')
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** Reads attributes printed by `osl rls import --json`. @throws Failure for a file without attributes */
export function statedSources(file: string): readonly CallerAttribute[] {
  const { attributes } = fieldsOf(parse(textIn(file)));
  if (!Array.isArray(attributes)) throw usage(`${file}: \`attributes\` must be a list`);
  return membersOf(attributes).map(({ name, from, list }) => {
    const source = typeof from === 'string' ? sourceFrom(from) : null;
    if (typeof name === 'string' && source !== null) return { name, source, list: list === true };
    throw usage(
      `${file}: an attribute has \`name\` and \`from\`, such as \`setting app.tenant\` or \`claim org.id\``,
    );
  });
}

function textIn(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw usage(`${file}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** SQL for the caller's value as text; NULL if it is missing. Lists in claims are JSON. */
export function valueSql({ source, list }: CallerAttribute): string {
  switch (source.kind) {
    case 'setting':
      return settingSql(source.name);
    case 'claim':
      return claimSql(source.path, list ? '->' : '->>');
    case 'database user':
      return 'current_user::text';
  }
}

/** SQL condition that the caller has a value. @param single true to reject arrays and objects in non-list claims */
export function presenceSql(attribute: CallerAttribute, single: boolean): string {
  const { source, list } = attribute;
  if (source.kind === 'claim' && single && !list)
    return `((select jsonb_typeof(${claimSql(source.path, '->')})) = any (array['string', 'number', 'boolean']))`;
  return `((select ${valueSql(attribute)}) is not null)`;
}

function claimSql(path: readonly string[], operator: '->' | '->>'): string {
  const keys = path.map((key, i) => ` ${i < path.length - 1 ? '->' : operator} ${quoteLiteral(key)}`);
  return `(${settingSql('request.jwt.claims')}::jsonb${keys.join('')})`;
}

/** A custom setting becomes empty, not NULL, when an earlier SET LOCAL ends, so empty counts as missing. */
function settingSql(name: string): string {
  return `nullif(current_setting(${quoteLiteral(name)}, true), '')`;
}

/** Error for a part of a policy that row security cannot express. Its message is the reason. */
export class Inexpressible extends Error {
  override readonly name = 'Inexpressible';
}
