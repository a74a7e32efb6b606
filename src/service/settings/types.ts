import { isAbsolute, resolve } from 'node:path';
import { networkOf } from '../../base/networks.js';

/** Type of a setting: the texts it accepts, and their values. */
interface SettingType<T> {
  /** Noun phrase for messages and documents: `a whole number from 1 to 64`. */
  readonly takes: string;
  /** True if the text holds several values, separated by commas. */
  readonly isList: boolean;
  /** True if the text may hold a secret, so that no message may quote it. */
  readonly isSecret: boolean;
  /** The only words accepted, for completion; empty if the type is not a list of words. */
  readonly words: readonly string[];
  /**
   * @param folder base for relative paths
   * @param refuse reports the part of the text that is not acceptable, by throwing
   */
  parse(text: string, folder: string, refuse: (part: string) => never): T;
}

/** A setting: its type, its default as an operator would write it (null if there is none), and a description. */
export interface SettingDefinition<T> {
  readonly type: SettingType<T>;
  readonly default: string | null;
  /** One or two sentences in Markdown; links are relative to `docs/`. */
  readonly description: string;
  /** The flag of `osl serve` with its argument, if the setting has one. */
  readonly flag: string | null;
}

export function setting<T>(
  type: SettingType<T>,
  initial: string,
  description: string,
  flag: string | null = null,
): SettingDefinition<T> {
  return Object.freeze({ type, default: initial, description, flag });
}

/** Makes a setting optional: its value is null unless it is set. */
export function optional<T>(
  type: SettingType<T>,
  description: string,
  flag: string | null = null,
): SettingDefinition<T | null> {
  return Object.freeze({ type, default: null, description, flag });
}

interface SettingTraits {
  readonly isList?: true;
  readonly isSecret?: true;
  readonly words?: readonly string[];
}

function typeOf<T>(
  takes: string,
  parse: SettingType<T>['parse'],
  traits: SettingTraits = {},
): SettingType<T> {
  return Object.freeze({ takes, isList: false, isSecret: false, words: [], ...traits, parse });
}

/** Parses a number; NaN for anything else, including blank text. */
function parseNumber(text: string): number {
  return text.trim() === '' ? Number.NaN : Number(text);
}

/** A whole number in `unit`, multiplied by `factor`: `mib` yields bytes, `seconds` milliseconds. */
function numberIn(unit: string, factor: number) {
  return (min: number, max: number): SettingType<number> =>
    typeOf(`a whole number${unit} from ${min} to ${max}`, (text, _folder, refuse) => {
      const value = parseNumber(text);
      return Number.isInteger(value) && value >= min && value <= max ? value * factor : refuse(text);
    });
}

export const integer = numberIn('', 1);
export const milliseconds = numberIn(' of milliseconds', 1);
export const seconds = numberIn(' of seconds', 1_000);
export const days = numberIn(' of days', 86_400_000);
export const kib = numberIn(' of KiB', 1_024);
export const mib = numberIn(' of MiB', 1_048_576);
export const percent = numberIn(' of percent', 0.01);
export const port = integer(0, 65_535);

/** A decimal number within inclusive bounds. */
export function decimal(min: number, max: number): SettingType<number> {
  return typeOf(`a number from ${min} to ${max}`, (text, _folder, refuse) => {
    const value = parseNumber(text);
    return Number.isFinite(value) && value >= min && value <= max ? value : refuse(text);
  });
}

export function oneOf<const T extends string>(...words: readonly T[]): SettingType<T> {
  const takes = words.length === 1 ? `${words[0]}` : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;
  return typeOf(takes, (text, _folder, refuse) => words.find((word) => word === text) ?? refuse(text), {
    words,
  });
}

export const onOff: SettingType<boolean> = typeOf(
  'on or off',
  (text, _folder, refuse) => (text === 'on' ? true : text === 'off' ? false : refuse(text)),
  { words: ['on', 'off'] },
);

/** True for `word` in upper or lower case, false for any other text. Refuses nothing, since OSL_DEBUG is read while an error is reported. */
export function flag(word: string): SettingType<boolean> {
  return typeOf(`\`${word}\``, (text) => text.toLowerCase() === word);
}

/** A setting that accepts `word` or a value of `type`. */
export function wordOr<const W extends string, T>(word: W, type: SettingType<T>): SettingType<W | T> {
  return typeOf(`${word} or ${type.takes}`, (text, folder, refuse) =>
    text === word ? word : type.parse(text, folder, refuse),
  );
}

export function text(takes: string): SettingType<string> {
  return typeOf(takes, (value) => value);
}

export function secret(takes: string): SettingType<string> {
  return typeOf(takes, (value) => value, { isSecret: true });
}

/** A path, made absolute. */
export function path(takes: string): SettingType<string> {
  return typeOf(takes, (value, folder) => toAbsolute(value, folder));
}

function toAbsolute(value: string, folder: string): string {
  return isAbsolute(value) ? value : resolve(folder, value);
}

/** An http or https URL as written. Its path or query may contain a token. */
export const webUrl: SettingType<string> = typeOf('an http or https URL', requireWebUrl, { isSecret: true });

/** The origin of an http or https URL, such as `https://osl.example`. */
export const webOrigin: SettingType<string> = typeOf(
  'an http or https URL',
  (value, folder, refuse) => new URL(requireWebUrl(value, folder, refuse)).origin,
);

function requireWebUrl(value: string, _folder: string, refuse: (part: string) => never): string {
  return URL.canParse(value) && /^https?:$/.test(new URL(value).protocol) ? value : refuse(value);
}

/** Values separated by commas; surrounding whitespace is ignored. */
function list<T>(
  takes: string,
  item: SettingType<T>['parse'],
  traits: SettingTraits = {},
): SettingType<readonly T[]> {
  const parse: SettingType<readonly T[]>['parse'] = (value, folder, refuse) =>
    splitList(value).map((part) => item(part, folder, refuse));
  return typeOf(takes, parse, { isList: true, ...traits });
}

/** Splits a text at its commas; an empty text has no values. */
export function splitList(value: string): readonly string[] {
  return value
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

export function names(takes: string): SettingType<readonly string[]> {
  return list(takes, (value) => value);
}

export const networks: SettingType<readonly string[]> = list(
  'addresses or networks such as 10.0.0.0/8',
  (value, _folder, refuse) => (networkOf(value) === null ? refuse(value) : value),
);

/** Origins exactly as a browser sends them: no `*`, no path, no default port. */
export const origins: SettingType<readonly string[]> = list(
  'origins as browsers send them, such as https://app.example',
  (value, _folder, refuse) => {
    const isWeb = /^https?:/.test(value) && !value.includes('*');
    return isWeb && URL.canParse(value) && new URL(value).origin === value ? value : refuse(value);
  },
);

/** A PEM file with one key, or a JSON Web Key Set. */
export interface PublicKeyFile {
  /**
   * The key id (`kid`) used by tokens for the key in a PEM file; null if not set, and for a JWKS, which has its own.
   */
  readonly kid: string | null;
  readonly file: string;
}

/** Files of public keys, each written as `issuer.pem` or `kid=issuer.pem`. */
export const publicKeyFiles: SettingType<readonly PublicKeyFile[]> = list(
  '`FILE` or `KID=FILE`, PEM or JWKS',
  (value, folder) => {
    const separator = value.indexOf('=');
    const kid = separator > 0 && !value.slice(0, separator).includes('/') ? value.slice(0, separator) : null;
    return Object.freeze({
      kid,
      file: toAbsolute(kid === null ? value : value.slice(separator + 1), folder),
    });
  },
);

/** Directories, which are made absolute, or URLs, which may contain a password. */
export const places: SettingType<readonly string[]> = list(
  'directories and URLs',
  (value, folder) => (/^[\w+.-]+:/.test(value) ? value : toAbsolute(value, folder)),
  { isSecret: true },
);
