import t from 'tap';
import { executionError, parseErrorResponse, StatementFault } from '../../src/engine/upstream-error.js';
import { RIGHTS_FAULTS, toLoggable, UpstreamFailure } from '../../src/engine/upstream-report.js';

const SOURCES = [
  { kind: 'literal', type: 'int4' },
  { kind: 'client', type: 'date', number: 7 },
  { kind: 'gateway' },
] as const;
const SOURCE = { backstopSeconds: 300, refusalOf: () => null };
const READS = { objects: ['person'], relations: ['person'], tables: ['hidden.persons_t'], columns: ['id'] };

t.test('an SQLSTATE decides what a caller is told', async (t) => {
  const told = (sqlstate: string, message = '', parameter: number | null = null) =>
    executionError({ sqlstate, message, parameter, position: null }, SOURCE, {
      reads: READS,
      sources: SOURCES,
    });
  t.match(told('57014'), { entry: 'timedOut', message: /300 s/ });
  for (const lost of ['57P01', '57P03', '08003'])
    t.match(told(lost), { entry: 'databaseDown', sqlstate: '08006', http: 502 }, lost);
  t.match(told('22012'), {
    entry: 'evaluation',
    code: 'E0529',
    http: 400,
    sqlstate: '22012',
    parameter: null,
  });
  t.match(told('53100'), { entry: 'execution', code: 'E0510', http: 502, sqlstate: '53100' });
  t.match(told('22P02', '', 1), { entry: 'invalidLiteral', message: /^invalid .* int4$/, parameter: 0 });
  t.match(told('22P02', '', 2), {
    entry: 'invalidLiteral',
    message: /^parameter \$7: .* date$/,
    parameter: 1,
  });
  t.match(
    told('22P02', '', 3),
    { entry: 'execution', http: 502 },
    "a value of policy's is not a fault of the caller's",
  );
  for (const [sqlstate, entry, code] of [
    ['42501', 'sourceDenied', 'E0524'],
    ['42P01', 'sourceGone', 'E0525'],
    ['3F000', 'sourceGone', 'E0525'],
    ['42703', 'sourceGone', 'E0525'],
    ['42883', 'sourceChanged', 'E0526'],
    ['42804', 'sourceChanged', 'E0526'],
  ] as const) {
    const error = told(sqlstate, 'of hidden.persons_t');
    t.match(error, { entry, code, http: 502, message: /`person`/ });
    t.notMatch(`${error.message} ${error.hint}`, /hidden|persons_t/);
    t.match(
      executionError({ sqlstate, message: '', parameter: null, position: null }, SOURCE),
      { entry: 'execution', sqlstate },
      'it reads nothing',
    );
  }
  t.match(told('42501', RIGHTS_FAULTS.forged), { entry: 'execution' }, 'a refusal of our own functions');
});

t.test(
  'what the database does not understand is told of the text where it names a place in it',
  async (t) => {
    const sql = 'select r1.c1 as c1 from q1 as r1';
    const inText = (sqlstate: string, position: number | null, isParsed = true) => {
      const statement = { reads: READS, sql };
      const error = executionError(
        { sqlstate, message: '', parameter: null, position },
        SOURCE,
        statement,
        isParsed,
      );
      return error instanceof StatementFault ? error.inText : error.code;
    };
    t.equal(inText('42703', 8), '42703 at "r1.c1 as c1 from q1 as r1"');
    t.equal(inText('42601', 25), '42601 at "q1 as r1"');
    t.equal(inText('42703', null), null, 'of another server, or a function that stands there');
    t.equal(inText('42P10', null, false), '42P10', 'before anything ran');
    t.equal(inText('42501', 8), 'E0524');
    t.equal(inText('42704', 8), 'E0510', 'a type of the operator that is gone');
  },
);

t.test('an ErrorResponse is read whole, or as far as it goes', async (t) => {
  const body = Buffer.from('SERROR\0C22012\0Mdivision by zero\0Hdo not\0Rint4div\0\0');
  t.same(parseErrorResponse(body), {
    sqlstate: '22012',
    message: 'division by zero',
    routine: 'int4div',
    schema: null,
    table: null,
    column: null,
    constraint: null,
    dataType: null,
    parameter: null,
    position: null,
  });
  t.equal(parseErrorResponse(Buffer.from('C42703\0P17\0\0')).position, 17);
  t.equal(parseErrorResponse(Buffer.from('C220')).sqlstate, 'XX000');
  const context = (text: string) => parseErrorResponse(Buffer.from(`C22P02\0W${text}\0\0`)).parameter;
  t.equal(context("unnamed portal parameter $12 = '...'"), 12);
  t.equal(
    context("JSON data, line 1: {$9\nunnamed portal parameter $2 = '...'"),
    2,
    'the last line is the outermost',
  );
  t.equal(context('SQL function "f" statement 1'), null);
});

const SECRET = 'geheim-4711';

/** Messages of servers that have a value beside them, with the routine that makes them. */
const SAID: readonly (readonly [sqlstate: string, routine: string, message: string, shown: string | null])[] =
  [
    [
      '22P02',
      'pg_strtoint32',
      `invalid input syntax for type integer: "${SECRET}"`,
      'invalid input syntax for type integer',
    ],
    [
      '22P02',
      'x',
      `invalid input syntax for type integer: "a" ${SECRET} "b"`,
      'invalid input syntax for type integer',
    ],
    [
      '22P02',
      'x',
      `invalid input syntax for type double precision: "${SECRET}`,
      'invalid input syntax for type double precision',
    ],
    ['22P02', 'enum_in', `invalid input value for enum mood: "${SECRET}"`, 'invalid input value for enum'],
    ['22P02', 'array_in', `malformed array literal: "{${SECRET}"`, 'malformed array literal'],
    [
      '22P02',
      'json_ereport_error',
      'invalid input syntax for type json',
      'invalid input syntax for type json',
    ],
    [
      '22007',
      'DateTimeParseError',
      `invalid input syntax for type timestamp with time zone: "${SECRET}"`,
      'invalid input syntax for type timestamp with time zone',
    ],
    [
      '22008',
      'DateTimeParseError',
      `date/time field value out of range: "${SECRET}"`,
      'date/time field value out of range',
    ],
    ['22003', 'pg_strtoint32', `value "${SECRET}" is out of range for type integer`, 'value'],
    ['22023', 'x', `time zone "${SECRET}" not recognized`, 'time zone'],
    ['22023', 'x', `unit "${SECRET}" not recognized for type date`, 'unit'],
    [
      '22021',
      'report_invalid_encoding',
      `invalid byte sequence for encoding "UTF8": 0x4711`,
      'invalid byte sequence for encoding',
    ],
    [
      '22P05',
      'report_untranslatable_char',
      'character with byte sequence 0x47 0x11 in encoding "UTF8" has no equivalent',
      'character with byte sequence',
    ],
    [
      '22001',
      'bpchar',
      'value too long for type character varying(4711)',
      'value too long for type character varying',
    ],
    ['22012', 'int4div', 'division by zero', 'division by zero'],
    ['2201B', 'RE_compile', `invalid regular expression: ${SECRET}`, 'invalid regular expression'],
    ['22023', 'hex_decode', `invalid hexadecimal digit: "${SECRET}"`, 'invalid hexadecimal digit'],
    [
      '23505',
      '_bt_check_unique',
      'duplicate key value violates unique constraint "person_email"',
      'duplicate key value violates unique constraint',
    ],
    ['42601', 'makepol', `syntax error in tsquery: "${SECRET}"`, 'syntax error in tsquery'],
    ['42P01', 'RangeVarGetRelidExtended', `relation "${SECRET}" does not exist`, 'relation'],
    ['42704', 'x', `le type « ${SECRET} » n'existe pas`, 'le type'],
    ['42704', 'x', `型"${SECRET}"は存在しません`, '型'],
    [
      '42P01',
      'parserOpenTable',
      'relation "shop.orders" does not exist',
      'relation "shop.orders" does not exist',
    ],
    ['42501', 'aclcheck_error', 'permission denied for table orders', 'permission denied for table orders'],
    [
      '28P01',
      'auth_failed',
      `password authentication failed for user "${SECRET}"`,
      'password authentication failed for user',
    ],
    ['P0001', 'exec_stmt_raise', `no such customer ${SECRET}`, null],
    ['22023', 'exec_stmt_raise', `division by zero for ${SECRET}`, null],
    ['42P01', 'exec_stmt_raise', `relation of ${SECRET}`, null],
    ['22023', 'x', `the word of an extension about ${SECRET}`, null],
    ['22003', 'x', `integer out of rangers ${SECRET}`, null],
    ['38000', 'PLy_elog_impl', `KeyError: '${SECRET}'`, null],
    ['HV000', 'x', `the other server said ${SECRET}`, null],
    ['XX000', 'x', `cache lookup of ${SECRET}`, null],
  ];

t.test(
  'the log holds what the upstream says up to the first value, and nothing of what others made it say',
  async (t) => {
    for (const [sqlstate, routine, message, shown] of SAID) {
      const error = {
        ...parseErrorResponse(Buffer.alloc(0)),
        sqlstate,
        routine,
        message,
        detail: SECRET,
        hint: SECRET,
      };
      const words = toLoggable(error);
      t.equal(words.message, shown, message);
      t.notMatch(JSON.stringify(words), /geheim|4711/);
      t.notMatch(new UpstreamFailure(error).message, /geheim|4711/);
    }
    const names = {
      schema: 'shop',
      table: 'person',
      column: null,
      constraint: 'person_email',
      dataType: null,
    };
    const error = { ...parseErrorResponse(Buffer.from('C23505\0R_bt_check_unique\0')), ...names };
    t.equal(toLoggable(error).about, 'shop.person.person_email');
  },
);
