/** A question with a value that cannot be read or computed with: `‸` marks the place, and is not part of the text. */
export interface WrongValue {
  /** `{customer}` and `{order}` are the entities, or their tables in raw SQL. */
  readonly text: string;
  readonly parameters?: readonly (string | number)[];
  readonly code: 'E0511' | 'E0529';
  readonly sqlstate: string;
  readonly message: RegExp;
}

const INVALID = /^invalid input syntax for type /;
const RANGE = /^the value is out of range for type /;

function seen(text: string, sqlstate: string, message: RegExp): WrongValue {
  return { text, code: 'E0511', sqlstate, message };
}

function bound(text: string, value: string | number, sqlstate: string, message: RegExp): WrongValue {
  return { text, parameters: [value], code: 'E0511', sqlstate, message };
}

function computed(text: string, sqlstate: string, message: RegExp): WrongValue {
  return { text, code: 'E0529', sqlstate, message };
}

/** Faults in the text itself, found by the compiler or by the database. */
const LITERALS: readonly WrongValue[] = [
  seen("select date ‸'2024-02-30'", '22008', RANGE),
  seen("select id from {customer} where born > ‸'2023-02-29'", '22008', RANGE),
  seen("select id from {customer} where born > ‸'Feb 30 2024'", '22008', RANGE),
  seen("select date ‸'soon'", '22007', INVALID),
  seen("select timestamptz ‸'2024-01-01 25:00:00+00'", '22008', RANGE),
  seen("select timestamp ‸'2024-13-01'", '22008', RANGE),
  seen("select time ‸'12:61'", '22008', RANGE),
  seen("select interval ‸'3 foos'", '22007', INVALID),
  seen(
    "select timestamptz '2024-01-01' ‸at time zone 'Nowhere'",
    '22023',
    /^the database knows no time zone/,
  ),
  seen("select placed_at ‸at time zone 'Nowhere' from {order}", '22023', /^the database knows no time zone/),
  seen('select id from {customer} limit ‸-1', '2201W', /^LIMIT must not be negative$/),
  seen('select id from {customer} offset ‸-1', '2201X', /^OFFSET must not be negative$/),
  seen("select id from {customer} where id = ‸'abc'", '22P02', INVALID),
  seen("select int4 ‸'3000000000'", '22003', RANGE),
  seen("select ‸'40000'::int2", '22003', RANGE),
  seen("select uuid ‸'abc'", '22P02', INVALID),
  seen("select inet ‸'300.1.1.1'", '22P02', INVALID),
  seen("select jsonb ‸'{a'", '22P02', INVALID),
  seen("select ‸'{1,x}'::int4[]", '22P02', INVALID),
  seen("select ‸'[5,1)'::int4range", '22000', INVALID),
  seen("select ‸'\\x0g'::bytea", '22023', INVALID),
];

/** Faults in a parameter. */
const PARAMETERS: readonly WrongValue[] = [
  bound('select ‸$1::int4', 'abc', '22P02', /^parameter \$1: invalid input syntax for type int4$/),
  bound(
    'select ‸$1::int4',
    3_000_000_000,
    '22003',
    /^parameter \$1: the value is out of range for type int4$/,
  ),
  bound('select id from {customer} where id = ‸$1', 'abc', '22P02', /^parameter \$1: /),
  bound('select id from {customer} where born = ‸$1', '2024-02-30', '22008', /^parameter \$1: .* date$/),
  bound('select ‸$1::uuid', 'abc', '22P02', /uuid$/),
  bound('select ‸$1::inet', 'abc', '22P02', /inet$/),
  bound('select ‸$1::jsonb', '{"$9": ', '22P02', /jsonb$/),
  bound('select ‸$1::bool', 'maybe', '22P02', /bool$/),
  bound('select ‸$1::int4[]', '{a}', '22P02', /int4\[\]$/),
  bound('select id from {customer} limit ‸$1', -1, '2201W', /^LIMIT must not be negative$/),
  bound('select id from {customer} offset ‸$1', -5, '2201X', /^OFFSET must not be negative$/),
  bound('select id from {customer} limit ‸$1', 'abc', '22P02', /^parameter \$1: .* int8$/),
  bound('select now() ‸at time zone $1', 'Nowhere', '22023', /^the database knows no time zone/),
];

/** Faults that the database finds when it computes, with constants or with rows. */
const COMPUTED: readonly WrongValue[] = [
  computed('select 1 ‸/ 0', '22012', /^division by zero$/),
  computed('select 1 ‸/ (id - 1) from {customer}', '22012', /^division by zero$/),
  computed('select 10 ‸% (id - id) from {customer}', '22012', /^division by zero$/),
  computed('select 2147483647 ‸+ id from {customer}', '22003', /^a number is out of range$/),
  computed('select 3000000000‸::int4', '22003', /^a number is out of range$/),
  computed('select 12345‸::numeric(3,1)', '22003', /^a number is out of range$/),
  computed("select name ‸~ '(' from {customer}", '2201B', /^a regular expression is not valid$/),
  computed("select ‸regexp_replace(name, '[', 'x') from {customer}", '2201B', /^a regular expression/),
  computed('select ‸substring(name from 1 for -1) from {customer}', '22011', /^the length of a substring/),
  computed('select ‸log(0::float8)', '2201E', /^the argument of a logarithm/),
  computed('select ‸sqrt(-1)', '2201F', /^the argument of a power or root/),
  computed('select ‸width_bucket(5, 1, 1, 10)', '2201G', /^the arguments of width_bucket/),
  computed("select ‸to_date('2024-02-30', 'YYYY-MM-DD')", '22008', /^a date or time is out of range$/),
  computed("select ‸to_date('abc', 'YYYY-MM-DD')", '22007', /^a date or time does not have the form/),
  computed('select ‸make_date(2024, 2, 30)', '22008', /^a date or time is out of range$/),
  computed(
    "select (name || 'x')‸::int4 from {customer}",
    '22P02',
    /^a value does not have the form of its type$/,
  ),
  computed("select ‸decode(name, 'hex') from {customer}", '22023', /^an argument has a value/),
  computed('select ‸ntile(0) over (order by id) from {customer}', '22014', /^the argument of ntile/),
  computed('select ‸int4range(5, 1)', '22000', /^a value is not valid where it is used$/),
  computed("select ‸to_tsquery('a &')", '42601', /^a text search query, or a path/),
  computed(
    'select ‸chr(0)',
    '54000',
    /^a value, or the number of rows that a function or recursive query makes, exceeds its limit$/,
  ),
];

/** Every class of wrong values, each on every surface. */
export const WRONG_VALUES: readonly WrongValue[] = [...LITERALS, ...PARAMETERS, ...COMPUTED];
