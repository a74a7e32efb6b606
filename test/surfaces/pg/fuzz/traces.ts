import {
  bind,
  cancelRequest,
  close,
  describe,
  execute,
  flush,
  gssRequest,
  int32,
  join,
  message,
  packet,
  parse,
  password,
  query,
  sslRequest,
  startup,
  sync,
  text,
  version,
} from '../../../wire/support/bytes.js';
import type { Caller } from './world.js';

/** What clients send between two ReadyForQuery, message by message, by what it is about. */
export const TRACES: Readonly<Record<string, readonly Buffer[]>> = {
  simple: [
    query('select id, name, email, tax_no, born, region from customer order by id'),
    query("select count(*), sum(amount) from \"order\" where region = 'eu'; select 'after'"),
    query('set application_name = fuzz; show application_name; reset application_name'),
    query(';'),
  ],
  'simple, refused': [
    query('select nothing from customer'),
    query('select 1; select 1/0; select 2'),
    query('delete from customer'),
    query('select ('),
  ],
  extended: [
    parse('', 'select id, email, born from customer where id < $1 order by id', [23]),
    describe('S'),
    bind('', '', { values: [int32(4)], formats: [1], results: [1, 0, 1] }),
    describe('P'),
    execute(),
    sync,
  ],
  prepared: [
    parse('p1', 'select name, email from customer where region = $1 and name <> $2 order by 1'),
    bind('', 'p1', { values: ['eu', 'Bo'] }),
    execute(),
    bind('', 'p1', { values: ['us', null] }),
    execute('', 1),
    flush,
    close('S', 'p1'),
    sync,
  ],
  'portals by the names of cursors': [
    query('begin; declare c cursor for select id from customer order by id'),
    parse('', 'select id from customer order by id'),
    bind('p', ''),
    execute('p', 1),
    parse('f', 'fetch 1 from p'),
    bind('', 'f'),
    execute(),
    describe('P', 'c'),
    execute('c', 1),
    close('S', 'f'),
    sync,
    query('move 1 in p; fetch 1 from c; close p; commit'),
  ],
  'extended, refused': [
    parse('', 'select tax_no from nowhere'),
    bind('', ''),
    execute(),
    query('select 1'),
    sync,
    bind('', 'nobody'),
    sync,
  ],
  portals: [
    query('begin read only'),
    parse('', 'select id, customer_id, amount from "order" order by id'),
    bind('c', ''),
    describe('P', 'c'),
    execute('c', 3),
    execute('c', 4),
    sync,
    execute('c', 0),
    close('P', 'c'),
    sync,
    query('savepoint a; release a; commit'),
  ],
  cursors: [
    query('begin'),
    query('declare k cursor for select id, email, tax_no from customer order by id'),
    query('fetch 2 from k; move k; fetch all from k'),
    query('close k; rollback'),
  ],
  copy: [
    query('copy (select id, email, born from customer order by id) to stdout'),
    query('copy (select id, email from customer order by id) to stdout (format csv, header)'),
    query('copy (select id, tax_no from customer) to stdout (format binary)'),
    message('d', '1\tx\n'),
    message('c'),
    message('f', text('no')),
    query('copy customer from stdin'),
  ],
};

/** Connections up to their first ReadyForQuery, or to what ends them. The token is the subject's. */
export function openings({
  subject: user,
  token,
  account,
}: Caller): Readonly<Record<string, readonly Buffer[]>> {
  const plain = startup({ user, database: 'osl', application_name: 'fuzz' });
  return {
    token: [plain, password(token)],
    'encryption asked first': [sslRequest, gssRequest, plain, password(token)],
    '3.2 with an option': [startup({ user, database: 'osl', '_pq_.x': '1' }, version(3, 2)), password(token)],
    'a newer version': [packet(version(4, 0), '\0')],
    'settings at startup': [
      startup({
        user,
        database: 'osl',
        DateStyle: 'ISO, MDY',
        extra_float_digits: '2',
        TimeZone: 'UTC',
      }),
      password(token),
    ],
    'options refused': [startup({ user, database: 'osl', options: '-c search_path=shop' }), password(token)],
    'no such database': [startup({ user, database: 'shop' }), password(token)],
    nobody: [startup({ database: 'osl' }), password(token)],
    'another name': [startup({ user: 'user:ada', database: 'osl' }), password(token)],
    'a wrong password': [plain, password('wrong')],
    cancel: [cancelRequest(1, Buffer.from('0badc0de', 'hex'))],
    SCRAM: [
      startup({ user: account, database: 'osl' }),
      message('p', text('SCRAM-SHA-256'), int32(21), 'n,,n=,r=fyko+d2lbbFgO'),
      join(message('p', 'c=biws,r=fyko+d2lbbFgO,p=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=')),
    ],
  };
}

/** Takes far longer than anybody waits: ten orders a customer, joined again and again. */
export const ENDLESS = `select count(*) from "order" a${['b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j']
  .map((name, i) => ` join "order" ${name} on ${'abcdefghi'.charAt(i)}.customer_id = ${name}.customer_id`)
  .join('')}`;
