import { networkInterfaces } from 'node:os';
import { test } from 'tap';
import { isLoopback } from '../../wire/connection.js';
import {
  gssRequest,
  int32,
  join,
  message,
  packet,
  password,
  sslRequest,
  startup,
  text,
  version,
} from './support/bytes.js';
import { Client } from './support/client.js';
import { eventually, Scripted } from './support/scripted.js';

const ada = { user: 'ada' };
const asks = ['R 3'];
const FATAL = (rest: string) => [`E FATAL ${rest}`, 'closed'];
/** As from Postgres, to whoever has sent no whole packet. */
const SILENCE = ['closed'];
const NOT_PERMITTED = (name: string) =>
  FATAL(
    `42501 startup parameter "${name}" is not permitted [H Remove it from the connection settings; what a session may change, it can SET once connected.]`,
  );

/** First packet → what comes back before the password is asked for, or instead. */
const FIRST_PACKETS: readonly (readonly [name: string, sent: Buffer, expected: readonly string[]])[] = [
  ['3.0', startup(ada), asks],
  ['3.2', startup(ada, version(3, 2)), asks],
  ['3.9 is negotiated down to 3.2', startup(ada, version(3, 9)), ['v 3.2', 'R 3']],
  [
    'protocol options are listed as unknown',
    startup({ ...ada, '_pq_.foo': '1', '_pq_.bar': '' }),
    ['v 3.2 _pq_.foo,_pq_.bar', 'R 3'],
  ],
  [
    '4.0',
    startup(ada, version(4, 0)),
    FATAL('0A000 unsupported frontend protocol 4.0: server supports 3.0 to 3.2'),
  ],
  [
    '2.0',
    startup(ada, version(2, 0)),
    FATAL('0A000 unsupported frontend protocol 2.0: server supports 3.0 to 3.2'),
  ],
  ['no user', startup({ database: 'osl' }), FATAL('28000 no user name specified in startup packet')],
  ['empty user', startup({ user: '' }), FATAL('28000 no user name specified in startup packet')],
  [
    'no terminator',
    packet(version(3, 0), text('user'), text('ada')),
    FATAL('08P01 invalid startup packet layout: expected terminator as last byte'),
  ],
  [
    'bytes behind the terminator',
    packet(version(3, 0), text('user'), text('ada'), '\0x'),
    FATAL('08P01 invalid startup packet layout: expected terminator as last byte'),
  ],
  [
    'a name without value',
    packet(version(3, 0), text('user')),
    FATAL('08P01 invalid startup packet layout: expected terminator as last byte'),
  ],
  [
    'a value without NUL',
    packet(version(3, 0), text('user'), 'ada'),
    FATAL('08P01 invalid string in message'),
  ],
  [
    'invalid UTF-8',
    packet(version(3, 0), text('user'), Buffer.from([0xff, 0, 0])),
    FATAL('22021 invalid byte sequence for encoding "UTF8"'),
  ],
  ['length 0', int32(0), SILENCE],
  ['length 7', int32(7), SILENCE],
  ['length 10,001', int32(10_001), SILENCE],
  ['length 2³²−1', int32(-1), SILENCE],
  ['HTTP', Buffer.from('GET / HTTP/1.1\r\n\r\n'), SILENCE],
  ['10,000 bytes', startup({ ...ada, application_name: 'x'.repeat(10_000 - 8 - 9 - 17 - 2) }), asks],
  [
    'replication',
    startup({ ...ada, replication: 'database' }),
    FATAL('0A000 replication connections are not supported'),
  ],
  ['replication=false', startup({ ...ada, replication: 'false' }), asks],
  ['options', startup({ ...ada, options: '-c search_path=evil' }), NOT_PERMITTED('search_path')],
  [
    'options as a long option',
    startup({ ...ada, options: '-c TimeZone=UTC --search-path=evil' }),
    NOT_PERMITTED('search_path'),
  ],
  [
    'options with what is permitted',
    startup({ ...ada, options: '-cDateStyle=SQL,\\ DMY --TimeZone=UTC' }),
    asks,
  ],
  [
    'options that are no settings',
    startup({ ...ada, options: '-c TimeZone=UTC -d 5' }),
    FATAL('42601 startup parameter "options" is not understood [H It takes settings: -c name=value.]'),
  ],
  [
    'options with an encoding',
    startup({ ...ada, options: '-c client_encoding=LATIN0' }),
    FATAL('22023 invalid value for parameter "client_encoding": "LATIN0"'),
  ],
  ['search_path', startup({ ...ada, Search_Path: 'evil' }), NOT_PERMITTED('Search_Path')],
  ['USER is not user', startup({ ...ada, USER: 'eve' }), NOT_PERMITTED('USER')],
  ['__proto__', startup({ ...ada, ['__proto__x']: 'y' }), NOT_PERMITTED('__proto__x')],
  [
    'an encoding that there is not',
    startup({ ...ada, client_encoding: 'MULE_INTERNAL' }),
    FATAL('22023 invalid value for parameter "client_encoding": "MULE_INTERNAL"'),
  ],
  ['LATIN1', startup({ ...ada, client_encoding: 'latin1' }), asks],
  ["asyncpg's quoted encoding", startup({ ...ada, client_encoding: "'utf-8'" }), asks],
  [
    'SSLRequest + StartupMessage in one segment',
    join(sslRequest, startup(ada)),
    FATAL('08P01 received unencrypted data after encryption request'),
  ],
  [
    'GSSENCRequest + StartupMessage in one segment',
    join(gssRequest, startup(ada)),
    FATAL('08P01 received unencrypted data after encryption request'),
  ],
  ['SSLRequest with a tail', packet(80877103, 'x'), FATAL('08P01 invalid message format')],
  ['CancelRequest with a 3-byte key', packet(80877102, int32(1), 'abc'), SILENCE],
];

test('first packets', async (t) => {
  const handler = new Scripted();
  const { port, stop } = await handler.serve();
  t.teardown(stop);
  for (const [name, sent, expected] of FIRST_PACKETS) {
    const client = await Client.open(port);
    client.send(sent);
    t.same(await client.until(expected.at(-1) ?? ''), expected, name);
    client.end();
  }
  t.equal(handler.logins.length, 0, 'nobody was authenticated');
  const refused = FIRST_PACKETS.filter(([, , expected]) => expected.includes('closed')).length;
  t.equal(
    handler.refusals.filter((r) => r.kind === 'startup' || r.kind === 'cancel').length,
    refused,
    'each refusal was reported',
  );
  t.same(
    handler.refusals.find((r) => r.sqlstate === '0A000'),
    {
      kind: 'startup',
      sqlstate: '0A000',
      reason: 'unsupported frontend protocol 4.0: server supports 3.0 to 3.2',
      user: null,
      remoteAddress: '127.0.0.1',
    },
  );
});

/** Password message → what comes back. */
const PASSWORDS: readonly (readonly [name: string, sent: Buffer, expected: readonly string[]])[] = [
  ['right', password('right'), ['R 0', 'S server_version=15.0', 'K 4-byte key', 'Z I']],
  ['wrong', password('wrong'), FATAL('28P01 password authentication failed for user "ada"')],
  ["the handler's own error, made FATAL", password('expired'), FATAL('28000 the token has expired')],
  ['a bug in the handler says nothing', password('bug'), FATAL('XX000 internal error')],
  ['empty', password(''), FATAL('28P01 empty password returned by client')],
  ['no NUL', message('p', 'right'), FATAL('08P01 invalid string in message')],
  ['bytes behind the NUL', message('p', text('right'), 'x'), FATAL('08P01 invalid password packet size')],
  [
    'invalid UTF-8',
    message('p', Buffer.from([0xc3, 0])),
    FATAL('22021 invalid byte sequence for encoding "UTF8"'),
  ],
  [
    'a Query instead',
    message('Q', text('rows 1')),
    FATAL('08P01 expected password response, got message type 81'),
  ],
  ['65,536 bytes', join('p', int32(65_536)), FATAL('08P01 invalid message length')],
  ['length 3', join('p', int32(3)), FATAL('08P01 invalid message length')],
];

test('password messages', async (t) => {
  const handler = new Scripted();
  const { server, port, stop } = await handler.serve();
  t.teardown(stop);
  for (const [name, sent, expected] of PASSWORDS) {
    const client = await Client.open(port);
    client.send(startup(ada));
    await client.until('R 3');
    client.send(sent);
    t.same(await client.until(expected.at(-1) ?? ''), expected, name);
    client.end();
  }
  t.equal(handler.bugs.length, 1, 'the bug was reported');
  await eventually(() => server.connections === 0);
  t.equal(handler.refusals.filter((r) => r.kind === 'password' && r.user === 'ada').length, 7);
});

test('what the handler learns of a login', async (t) => {
  const handler = new Scripted();
  const { port, stop } = await handler.serve();
  t.teardown(stop);
  await Client.ready(port, { database: 'osl', datestyle: 'ISO', application_name: 'é' });
  await Client.ready(port);
  const [first, second] = handler.logins;
  t.equal(first?.user, 'ada');
  t.equal(first?.password, 'right');
  t.equal(first?.database, 'osl');
  t.equal(first?.remoteAddress, '127.0.0.1');
  t.equal(first?.encrypted, false);
  t.same(
    [...(first?.parameters ?? [])],
    [
      ['DateStyle', 'ISO'],
      ['application_name', 'é'],
    ],
    'canonical names',
  );
  t.equal(second?.database, 'ada', 'the database defaults to the user');
});

test('protocol 3.2 gets a key of 32 bytes', async (t) => {
  const { port, stop } = await new Scripted().serve();
  t.teardown(stop);
  const client = await Client.ready(port, {}, version(3, 2));
  t.equal(client.cancelKey?.key.length, 32);
});

test('the password may come before it is asked for', async (t) => {
  const { port, stop } = await new Scripted().serve();
  t.teardown(stop);
  const client = await Client.open(port);
  client.send(startup(ada), password('right'));
  t.same(await client.until('Z'), ['R 3', 'R 0', 'S server_version=15.0', 'K 4-byte key', 'Z I']);
});

test('encryption requests: one of each', async (t) => {
  const { port, stop } = await new Scripted().serve();
  t.teardown(stop);
  const polite = await Client.open(port);
  t.equal(await polite.send(gssRequest).byte(), 'N');
  t.equal(await polite.send(sslRequest).byte(), 'N');
  t.same(await polite.send(startup(ada)).until('R'), ['R 3']);
  polite.end();
  for (const [request, code] of [
    [sslRequest, '1234.5679'],
    [gssRequest, '1234.5680'],
  ] as const) {
    const other = request === sslRequest ? gssRequest : sslRequest;
    const client = await Client.open(port);
    t.equal(await client.send(request).byte(), 'N');
    t.equal(await client.send(other).byte(), 'N');
    client.send(request);
    t.same(
      await client.rest(),
      FATAL(`0A000 unsupported frontend protocol ${code}: server supports 3.0 to 3.2`),
    );
  }
});

test('a password off loopback without TLS is refused before it is asked for', async (t) => {
  const outside = Object.values(networkInterfaces())
    .flat()
    .find((a) => a?.family === 'IPv4' && !a.internal);
  t.same(['127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1'].map(isLoopback), [true, true, true, true]);
  t.same(['10.0.0.1', '::ffff:10.0.0.1', '128.0.0.1', '', '127.evil'].map(isLoopback), [
    false,
    false,
    false,
    false,
    false,
  ]);
  if (outside === undefined) return;
  const { port, stop } = await new Scripted().serve({}, '0.0.0.0');
  t.teardown(stop);
  const client = await Client.open(port, outside.address);
  client.send(startup(ada));
  t.same(
    await client.rest(),
    FATAL(
      '28000 passwords are not accepted over an unencrypted connection [H Connect with sslmode=require.]',
    ),
  );
});

test('authentication that takes too long', async (t) => {
  const handler = new Scripted();
  const { port, stop } = await handler.serve({ authenticationTimeoutMs: 1_500 });
  t.teardown(stop);
  const silent = await Client.open(port);
  t.same(await silent.rest(), SILENCE);

  const passwordless = await Client.open(port);
  passwordless.send(startup(ada));
  t.same(await passwordless.rest(), ['R 3', ...FATAL('57014 canceling authentication due to timeout')]);

  let open = () => {};
  handler.gate = new Promise((resolve) => {
    open = resolve;
  });
  const slow = await Client.open(port);
  slow.send(startup(ada), password('right'));
  t.same(await slow.rest(), ['R 3', ...FATAL('57014 canceling authentication due to timeout')]);
  open();
  await eventually(() => handler.sessions[0]?.closed === 1);
  t.pass('a session that came too late is closed');
  t.same(
    handler.refusals.map((r) => r.kind),
    ['timeout', 'timeout', 'timeout'],
  );
});

test('too many connections that have not authenticated', async (t) => {
  const handler = new Scripted();
  const { server, port, stop } = await handler.serve({ maxUnauthenticated: 2 });
  t.teardown(stop);
  const authenticated = await Client.ready(port);
  const waiting = [await Client.open(port), await Client.open(port)];
  await eventually(() => server.connections === 3);
  const next = await Client.ready(port);
  t.ok(next.cancelKey, 'a new one is served');
  t.same(await waiting[0]?.rest(), SILENCE, 'in the place of the one that waited longest');
  t.match(handler.refusals[0], {
    kind: 'capacity',
    sqlstate: null,
    reason: 'too many connections are waiting for authentication',
  });
  const another = await Client.open(port);
  await eventually(() => server.connections === 4);
  waiting[1]?.send(startup(ada));
  t.same(await waiting[1]?.until('R 3'), ['R 3'], 'those within the bound go on');
  another.end();
  t.same(await authenticated.ask(Buffer.concat([message('Q', text('none'))])), ['C NONE', 'Z I']);
});

test('a client that leaves before it has authenticated is recorded, a port probe is not', async (t) => {
  const handler = new Scripted();
  const { server, port, stop } = await handler.serve();
  t.teardown(stop);
  (await Client.open(port)).end();
  (await Client.open(port)).send(startup(ada)).socket.end();
  await eventually(() => handler.refusals.length === 1 && server.connections === 0);
  t.same(handler.refusals[0]?.kind, 'abandoned');
  t.same(handler.refusals[0]?.user, 'ada');
});

test('nothing is sent to a client that leaves before its startup packet', async (t) => {
  const handler = new Scripted();
  const { server, port } = await handler.serve();
  const whole = startup(ada);
  const leavers = [Buffer.alloc(0), whole.subarray(0, 1), whole.subarray(0, 7), whole.subarray(0, -1)];
  for (const sent of leavers) {
    const client = await Client.open(port);
    client.send(sent).socket.end();
    t.same(await client.rest(), SILENCE, `${sent.length} bytes`);
  }
  for (const asks of [sslRequest, gssRequest]) {
    const client = await Client.open(port);
    t.equal(await client.send(asks).byte(), 'N');
    client.send(whole.subarray(0, 9)).socket.end();
    t.same(await client.rest(), SILENCE, 'after it asked for encryption');
  }
  const waiting = await Client.open(port);
  waiting.send(whole.subarray(0, 9));
  await eventually(() => server.connections === 1);
  const stopped = server.stop(5_000);
  t.same(await waiting.rest(), SILENCE, 'nor by a server that stops');
  await stopped;
  t.ok(
    handler.refusals.every((r) => r.sqlstate === null),
    'the log says that they were told nothing',
  );
});
