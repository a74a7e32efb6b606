import {
  bind,
  close,
  describe,
  execute,
  message,
  parse,
  query,
  startup,
  text,
} from '../../wire/support/bytes.js';

/** Names and values of the protocol that are as long as their message may be, or as many. */
export interface NameFamily {
  readonly name: string;
  /** Messages of a session, before a Sync; or a startup packet. */
  at(n: number): readonly Buffer[];
  readonly startup?: true;
  /** Bytes of the longest of its messages; 1 MiB unless told. */
  readonly most?: number;
}

const SMALL = 9_990;
const x = (n: number): string => 'x'.repeat(n);
const quoted = (n: number): string => `"${x(n)}"`;
const said = (name: string, at: (n: number) => Buffer | readonly Buffer[], most?: number): NameFamily => ({
  name,
  at: (n) => [at(n)].flat(),
  ...(most === undefined ? {} : { most }),
});
const first = (name: string, at: (n: number) => Record<string, string>): NameFamily => ({
  name,
  at: (n) => [startup(at(n))],
  startup: true,
  most: SMALL,
});
const many = (n: number): Record<string, string> =>
  Object.fromEntries(Array.from({ length: n }, (_, i) => [`x${i}`, '1']));
const USER = { user: 'user:ann', database: 'osl' };

export const NAMES: readonly NameFamily[] = [
  first('user', (n) => ({ ...USER, user: x(n) })),
  first('database', (n) => ({ ...USER, database: x(n) })),
  first('application_name', (n) => ({ ...USER, application_name: x(n) })),
  first('options', (n) => ({ ...USER, options: '-c '.repeat(n / 3) })),
  first('options that set', (n) => ({ ...USER, options: '-c a.b=1 '.repeat(n / 9) })),
  first('escapes in options', (n) => ({ ...USER, options: '\\ '.repeat(n / 2) })),
  first('search_path', (n) => ({ ...USER, search_path: 'a,'.repeat(n / 2) })),
  first('datestyle', (n) => ({ ...USER, datestyle: 'iso,'.repeat(n / 4) })),
  first('parameters of a startup', (n) => ({ ...USER, ...many(n / 8) })),
  first('protocol options', (n) => ({
    ...USER,
    ...Object.fromEntries(Object.keys(many(n / 12)).map((k) => [`_pq_.${k}`, '1'])),
  })),
  first('TimeZone', (n) => ({ ...USER, timezone: `${'a/'.repeat(n / 2)}a` })),
  said('name of a statement', (n) => parse(x(n), 'select 1')),
  said('name of a statement of wide characters', (n) => parse('😀'.repeat(n / 4), 'select 1')),
  said('a statement that is not there', (n) => describe('S', x(n)), SMALL),
  said('a statement that is not there, bound', (n) => bind('', x(n))),
  said('name of a portal', (n) => [parse('', 'select 1'), bind(x(n), ''), execute('')]),
  said('a portal that is not there', (n) => execute(x(n)), SMALL),
  said('a portal that is closed', (n) => close('P', x(n)), SMALL),
  said('types of a statement', (n) =>
    parse(
      '',
      'select 1',
      Array.from({ length: Math.min(n / 4, 65_535) }, () => 25),
    ),
  ),
  said('statements', (n) =>
    Array.from({ length: Math.min(n / 20, 5_000) }, (_, i) => parse(`s${i}`, 'select 1')),
  ),
  said('portals', (n) => [
    parse('', 'select 1'),
    ...Array.from({ length: Math.min(n / 20, 5_000) }, (_, i) => bind(`p${i}`, '')),
  ]),
  said('a value that is bound', (n) => [
    parse('', 'select $1::text'),
    bind('', '', { values: [x(n)] }),
    execute(),
  ]),
  said('an unknown message', (n) => message('y', text(x(n)))),
  said('name of a cursor', (n) => [
    query('begin'),
    query(`declare ${quoted(n)} cursor for select 1`),
    query('rollback'),
  ]),
  said('cursors', (n) => [
    query('begin'),
    ...Array.from({ length: Math.min(n / 40, 500) }, (_, i) => query(`declare c${i} cursor for select 1`)),
    query('rollback'),
  ]),
  said('FETCH from a name', (n) => query(`fetch all from ${quoted(n)}`)),
  said('CLOSE of a name', (n) => query(`close ${quoted(n)}`)),
  said('PREPARE of a name', (n) => query(`prepare ${quoted(n)} as select 1`)),
  said('EXECUTE of a name', (n) => query(`execute ${quoted(n)}(1)`)),
  said('DEALLOCATE of a name', (n) => query(`deallocate ${quoted(n)}`)),
  said('SAVEPOINT of a name', (n) => query(`savepoint ${quoted(n)}`)),
  said('SET of a name', (n) => query(`set ${quoted(n)} to 1`)),
  said('SET of a name with a dot', (n) => query(`set a.${quoted(n)} to 1`)),
  said('SET of a value', (n) => query(`set application_name to '${x(n)}'`)),
  said('SET of a value with a class', (n) => query(`set a.b to '${x(n)}'`)),
  said('SET of the date style', (n) => query(`set datestyle to '${'iso,'.repeat(n / 4)}'`)),
  said('SET of the search path', (n) => query(`set search_path to '${'a,'.repeat(n / 2)}'`)),
  said('SET of a search path of names', (n) => query(`set search_path to ${'a,'.repeat(n / 2)}a`)),
  said('SET of the time zone', (n) => query(`set time zone '${'a'.repeat(n)}'`)),
  said('SET of an interval', (n) => query(`set time zone interval '${'1 '.repeat(n / 2)}' hour to minute`)),
  said('SET of a number', (n) => query(`set statement_timeout to ${'1'.repeat(n)}`)),
  said('SET of a number with a unit', (n) => query(`set statement_timeout to '${'1'.repeat(n)} min'`)),
  said('set_config', (n) => query(`select set_config('a.b', '${x(n)}', false)`)),
  said('SHOW of a name', (n) => query(`show ${quoted(n)}`)),
  said('RESET of a name', (n) => query(`reset ${quoted(n)}`)),
  said('a value in another encoding', (n) => [
    query("set client_encoding to 'gb18030'"),
    parse('', 'select length($1::text)'),
    bind('', '', { values: [Buffer.alloc(n - (n % 2), Buffer.from([0xd6, 0xd0]))] }),
    execute(),
  ]),
  said('an answer in another encoding', (n) => [
    query("set client_encoding to 'gb18030'"),
    query(`select repeat(chr(20013), ${3 * n}) from shop.customers where id = 1`),
  ]),
  said('SETs', (n) => query('set a.b to 1;'.repeat(n / 13))),
];
