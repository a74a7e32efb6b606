import type { Message } from '../../surfaces/pg/fuzz/conversation.js';
import {
  bind,
  describe,
  execute,
  flush,
  join,
  parse,
  password,
  query,
  startup,
  sync,
} from '../../wire/support/bytes.js';
import { ScramClient } from '../../wire/support/scram.js';
import type { Caller } from './world.js';

/** What a client sends, and how it knows that it has been answered. */
export interface Step {
  send(heard: readonly Message[]): Buffer;
  done(heard: readonly Message[]): boolean;
}

export type Login = 'token' | 'password';

export type Trace = readonly Step[];

const count = (heard: readonly Message[], type: string): number =>
  heard.filter((m) => m.type === type).length;

/** Sends this at once, and is answered at the `ready`th ReadyForQuery since the login's. */
export function step(ready: number, ...bytes: readonly Buffer[]): Step {
  return { send: () => join(...bytes), done: (heard) => count(heard, 'Z') > ready };
}

/** Up to the first ReadyForQuery. */
export function loginSteps(how: Login, { subject, token, account }: Caller): readonly Step[] {
  const asked = (type: string, times: number) => (heard: readonly Message[]) => count(heard, type) >= times;
  if (how === 'token')
    return [
      { send: () => startup({ user: subject, database: 'osl' }), done: asked('R', 1) },
      { send: () => password(token), done: asked('Z', 1) },
    ];
  const scram = new ScramClient(account.password, 'fyko+d2lbbFgONRv9qkx');
  const last = (heard: readonly Message[]): Buffer => heard.at(-1)?.body ?? Buffer.alloc(0);
  return [
    { send: () => startup({ user: account.login, database: 'osl' }), done: asked('R', 1) },
    { send: () => scram.first(), done: asked('R', 2) },
    { send: (heard) => scram.final(last(heard)), done: asked('Z', 1) },
  ];
}

/** Rows of `a stream`, about a KiB each: more than sockets hold. */
const STREAMED = 2_000;

/** What follows a login, by what it is about. */
export const TRACES: Readonly<Record<string, Trace>> = {
  'a login': [],
  simple: [
    step(1, query(`select id, email from customer order by id`)),
    step(2, query(`select count(*) from "order" where id <= 40; select 'after'`)),
  ],
  'extended, with a row limit': [
    step(1, query('begin read only')),
    step(
      2,
      parse('', `select id, customer_id from "order" where id <= $1 order by id`, [20]),
      bind('c', '', { values: ['9'] }),
      describe('P', 'c'),
      execute('c', 4),
      sync,
    ),
    step(3, execute('c', 4), sync),
    step(4, execute('c', 0), sync),
    step(5, query('commit')),
  ],
  'a pipelined batch': [
    step(
      5,
      parse('p', `select id, name from customer where id = $1`, [23]),
      ...['1', '2', '3'].flatMap((id) => [bind('', 'p', { values: [id] }), execute(), sync]),
      bind('', 'p', { values: ['4'] }),
      execute(),
      flush,
      sync,
      query(`select 'last'`),
    ),
  ],
  'a stream': [
    step(1, query(`select id, note from "order" where id > 1000 and id <= ${1000 + STREAMED} order by id`)),
  ],
  'a cursor in a block': [
    step(1, query('begin')),
    step(2, query(`declare k cursor for select id, note from "order" where id > 1000 and id <= 1300`)),
    step(3, query('fetch 100 from k')),
    step(4, query('fetch all from k')),
    step(5, query('close k')),
    step(6, query('rollback')),
  ],
  'COPY TO STDOUT': [
    step(
      1,
      query(`copy (select id, note from "order" where id > 1000 and id <= 1500 order by id) to stdout`),
    ),
  ],
};
