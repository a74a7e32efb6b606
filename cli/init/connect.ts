import { sql } from '../../src/base/sql.js';
import { type Survey, surveyPostgres } from '../../src/engine/index.js';
import { describeConnectFault, readUrlFile, withoutPassword } from '../../src/service/connector-url.js';
import { EXIT, Failure, usage } from '../exit.js';
import type { Prompt } from './prompt.js';
import { DEFAULT_URL_ENV, type InitFlags } from './prompt.js';

export type UrlSource =
  | { readonly kind: 'variable'; readonly name: string }
  | { readonly kind: 'file'; readonly name: string; readonly file: string }
  | { readonly kind: 'given'; readonly name: string };

export interface ConnectedDatabase {
  readonly survey: Survey;
  /** Connection URL. It may contain a password, so it is never written to a file. */
  readonly url: string;
  readonly source: UrlSource;
}

export async function connectTo(flags: InitFlags, prompt: Prompt): Promise<ConnectedDatabase> {
  const name = flags.urlEnv ?? DEFAULT_URL_ENV;
  if (!/^[A-Z][A-Z0-9_]*$/.test(name))
    throw usage(`\`${name}\` is not a name of a variable: capitals, digits and _`);
  let { url, source } = await urlOf(flags, name, prompt);
  for (;;) {
    if (!/^postgres(ql)?:\/\//.test(url) || !URL.canParse(url))
      throw usage('the URL of a database looks like postgres://user:password@host:5432/database');
    try {
      return { survey: await surveyPostgres(url), url, source };
    } catch (error) {
      const fault = describeConnectFault(error);
      const again = prompt.assumes ? null : await withPassword(url, fault, prompt);
      if (again === null) throw usage(`${withoutPassword(url)}: ${fault}`);
      url = again;
      source = { kind: 'given', name };
    }
  }
}

async function urlOf(
  flags: InitFlags,
  name: string,
  prompt: Prompt,
): Promise<{ readonly url: string; readonly source: UrlSource }> {
  if (flags.url !== undefined) {
    const same = flags.url === process.env[name];
    return { url: flags.url, source: { kind: same ? 'variable' : 'given', name } };
  }
  if (flags.urlFile !== undefined) {
    return { url: readUrlFile(flags.urlFile), source: { kind: 'file', name, file: flags.urlFile } };
  }
  const set = process.env[name] ?? '';
  const variable: UrlSource = { kind: 'variable', name };
  if (prompt.assumes || flags.urlEnv !== undefined) {
    if (set === '') throw usage(`say which database: set ${name}, or give --url or --url-file`);
    return { url: set, source: variable };
  }
  prompt.say(
    'Which Postgres database? For example postgres://user@host:5432/database; a password is asked for.',
  );
  if (set !== '') {
    const answer = await prompt.ask(`URL, or Enter for that of ${name}`, withoutPassword(set));
    if (answer === withoutPassword(set)) return { url: set, source: variable };
    return { url: answer, source: { kind: 'given', name } };
  }
  const answer = await prompt.ask('URL', '');
  if (answer === '') throw usage('a database is needed: postgres://user@host:5432/database');
  return { url: answer, source: { kind: 'given', name } };
}

/** Asks for a password and returns the URL with it; null if the password was not the problem or none was entered. */
async function withPassword(url: string, fault: string, prompt: Prompt): Promise<string | null> {
  if (!fault.includes('password')) return null;
  const parsed = new URL(url);
  if (parsed.password !== '') prompt.say(`  ${fault}`);
  const password = await prompt.hidden(`Password of ${parsed.username || 'the role'}`);
  if (password === '') return null;
  parsed.password = encodeURIComponent(password);
  return parsed.href;
}

const ROLE = 'osl_reader';

/**
 * Returns the name of the database role to create: that of `--create-role` or, if the gateway refuses the connected
 * role, a name given by the user; otherwise null.
 *
 * @throws Failure if the role of `--create-role` exists, or a role is needed and the user cannot be asked
 */
export async function roleToCreate(
  { survey }: ConnectedDatabase,
  flags: InitFlags,
  prompt: Prompt,
): Promise<string | null> {
  if (flags.createRole !== undefined) {
    if (await isRole(survey, flags.createRole))
      throw usage(`--create-role: there is a role "${flags.createRole}" already`);
    return flags.createRole;
  }
  const { fault, role } = survey.report;
  if (fault === null) return null;
  const why = `questions are never asked as "${role}": role ${fault}`;
  if (prompt.assumes) {
    const hint = `--create-role ${ROLE} makes a role that may read the chosen tables and nothing else`;
    throw new Failure(EXIT.usage, `error: ${why}\n  hint: ${hint}`, { hint });
  }
  prompt.say(`\n${capital(why)}.`);
  prompt.say('I can make a role that may read the tables you choose, and nothing else.');
  for (;;) {
    const name = await prompt.ask('Name of the database role', ROLE);
    if (!(await isRole(survey, name))) return name;
    prompt.say(`  there is a role "${name}" already: give its URL to use it, or choose another name`);
  }
}

function capital(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

async function isRole({ system }: Survey, name: string): Promise<boolean> {
  return (await system.query(sql`select from pg_catalog.pg_roles where rolname = $1`, [name])).length > 0;
}
