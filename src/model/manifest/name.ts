import type { Connector } from './manifest.js';

/** Pattern of names of tenants, connectors, roles and labels, for JSON Schema. */
export const NAME_PATTERN = '^(?!__)[A-Za-z_][A-Za-z0-9_]{0,62}$';

const NAME = new RegExp(NAME_PATTERN);

/** Bytes of an identifier of Postgres, which cuts a longer one off. */
const LONGEST = 63;

/** True if `text` can be a name of a tenant, a connector or a role. */
export function isName(text: string): boolean {
  return NAME.test(text);
}

/** `text` as such a name: what none may hold becomes an underscore. */
export function nameFrom(text: string): string {
  const plain = text.replace(/[^A-Za-z0-9_]/g, '_').replace(/^_{2,}/, '_');
  return (/^[A-Za-z_]/.test(plain) ? plain : `t_${plain}`).slice(0, LONGEST);
}

const CHARACTERS = '\\p{L}\\p{M}\\p{N}_';

/** Pattern of names of the semantic model: letters of any script, and single blanks within. */
export const MODEL_NAME = `(?!__)[\\p{L}_][${CHARACTERS}]*(?: [${CHARACTERS}]+)*`;

/** The same as a pattern of JSON Schema: what an entity, a column, a metric and their like are called. */
export const MODEL_NAME_PATTERN = `^(?=.{1,63}$)${MODEL_NAME}$`;

const OF_MODEL = new RegExp(MODEL_NAME_PATTERN, 'u');

/** True if `text` can be a name of the semantic model: as the pattern, in 63 bytes of UTF-8, and composed (NFC). */
export function isModelName(text: string): boolean {
  return OF_MODEL.test(text) && Buffer.byteLength(text) <= LONGEST && text.normalize('NFC') === text;
}

const FOREIGN = new RegExp(`[^${CHARACTERS} ]`, 'gu');

/**
 * `text` as a name of the model: composed, other characters and blanks at its ends as underscores, cut to what Postgres
 * takes; `t_` before what may not begin it.
 */
export function modelNameFrom(text: string): string {
  const plain = text
    .normalize('NFC')
    .replace(FOREIGN, '_')
    .replace(/^ +| +$| (?= )/g, (blanks) => '_'.repeat(blanks.length))
    .replace(/^_{2,}/, '_');
  return cut(/^[\p{L}_]/u.test(plain) ? plain : `t_${plain}`, LONGEST);
}

/** `name` with `end` behind it, as much of it as there is room for. */
export function withEnd(name: string, end: string): string {
  return `${cut(name, LONGEST - Buffer.byteLength(end))}${end}`;
}

function cut(name: string, bytes: number): string {
  let room = bytes;
  let kept = '';
  for (const character of name) {
    room -= Buffer.byteLength(character);
    if (room < 0) break;
    kept += character;
  }
  return kept.replace(/ $/, '_');
}

/** The variable that holds the URL of the role that questions are asked as. */
export function urlVariable({ urlEnv }: Pick<Connector, 'urlEnv'>): string {
  return urlEnv ?? 'OSL_POSTGRES_URL';
}

/** The variable that holds the URL of the role for what is the gateway's own: stores of facets, and the catalog. */
export function systemUrlVariable(connector: Pick<Connector, 'urlEnv'>): string {
  return `${urlVariable(connector)}_SYSTEM`;
}
