import { type Answer, NotExpressible, type Session } from '../endpoint.js';

/** Session that sends GraphQL, and the simple SELECTs for which PostGraphile's schema has a form. */
export function graphqlSession(url: string, token: string | null): Session {
  return {
    ask: async (text, values) => {
      if (values !== undefined) throw new NotExpressible('parameters are not translated');
      const query = /^\s*(\{|query\b|mutation\b)/.test(text) ? text : toGraphql(text);
      const response = await fetch(url, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          ...(token !== null && { authorization: `Bearer ${token}` }),
        },
        body: JSON.stringify({ query }),
      });
      return answerOf(response, await response.text());
    },
    close: async () => undefined,
  };
}

interface Reply {
  readonly data?: Readonly<Record<string, Connection | null>> | null;
  readonly errors?: readonly { readonly message: string }[];
}

interface Connection {
  readonly nodes?: readonly Readonly<Record<string, unknown>>[];
  readonly totalCount?: number;
}

/** The answer in the form of others, with all that was received besides. */
function answerOf({ status, headers }: Response, text: string): Answer {
  const { data, errors } = JSON.parse(text) as Reply;
  const { nodes = [], totalCount } = Object.values(data ?? {})[0] ?? {};
  const rows = totalCount === undefined ? nodes : [{ totalCount }];
  const received = [...headers].filter(([name]) => name !== 'date').map((header) => header.join(': '));
  return {
    columns: Object.keys(rows[0] ?? {}),
    rows: rows.map((row) => Object.values(row).map((cell) => JSON.stringify(cell))),
    tag: null,
    notices: [String(status), ...received, text],
    error: errors === undefined ? null : JSON.stringify(errors),
  };
}

const FIELDS: Readonly<Record<string, string>> = {
  customer: 'allCustomers',
  purchase: 'allPurchases',
  region: 'allRegions',
  staff: 'allStaffs',
  ticket: 'allTickets',
};
const NAMES = String.raw`\w+(?:\s*,\s*\w+)*`;
const SELECT = new RegExp(
  String.raw`^select (?<columns>${NAMES}|\*|count\(\*\)) from (?<table>\w+)` +
    String.raw`(?: where (?<where>.+?))?(?: order by (?<order>.+?))?(?: limit (?<limit>\d+))?(?: offset (?<offset>\d+))?$`,
);
/** Columns of customers that GraphQL asks for `*`. */
const EVERYTHING = 'id, region, name, code, credit, born, vip, tags, email, ssn, notes';

/** `select id from customer where region = 'south' order by id limit 3` as a connection of PostGraphile. */
function toGraphql(sql: string): string {
  const parts = SELECT.exec(sql)?.groups;
  const field = FIELDS[parts?.['table'] ?? ''];
  if (parts === undefined || field === undefined) throw new NotExpressible(sql);
  const { columns = '', where, order, limit, offset } = parts;
  const args = [
    ...(where === undefined ? [] : [`condition: { ${where.split(' and ').map(equality).join(', ')} }`]),
    ...(order === undefined ? [] : [`orderBy: [${order.split(',').map(ordering).join(', ')}]`]),
    ...(limit === undefined ? [] : [`first: ${limit}`]),
    ...(offset === undefined ? [] : [`offset: ${offset}`]),
  ];
  const list = columns === '*' ? EVERYTHING : columns;
  if (/\d/.test(list)) throw new NotExpressible(sql);
  const wanted = list.startsWith('count')
    ? 'totalCount'
    : `nodes { ${list.split(',').map(camel).join(' ')} }`;
  return `{ ${field}${args.length === 0 ? '' : `(${args.join(', ')})`} { ${wanted} } }`;
}

function equality(text: string): string {
  const [, column = '', value = ''] = /^(\w+) = ('[^']*'|\d+)$/.exec(text.trim()) ?? [];
  if (column === '') throw new NotExpressible(text);
  return `${camel(column)}: ${value.replaceAll("'", '"')}`;
}

function ordering(text: string): string {
  const [, column = '', desc] = /^([a-z]\w*)( desc)?$/.exec(text.trim()) ?? [];
  if (column === '') throw new NotExpressible(text);
  return `${column.toUpperCase()}_${desc === undefined ? 'ASC' : 'DESC'}`;
}

function camel(name: string): string {
  return name.trim().replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}
