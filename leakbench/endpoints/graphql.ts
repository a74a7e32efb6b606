import { type Answer, NotExpressible, type Session } from '../endpoint.js';
import { objectsAnswer } from './http.js';
import { parseSelect } from './select.js';

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

function answerOf(response: Response, text: string): Answer {
  const { data, errors } = JSON.parse(text) as Reply;
  const { nodes = [], totalCount } = Object.values(data ?? {})[0] ?? {};
  const rows = totalCount === undefined ? nodes : [{ totalCount }];
  return objectsAnswer(rows, errors, response, text);
}

const FIELDS: Readonly<Record<string, string>> = {
  customer: 'allCustomers',
  purchase: 'allPurchases',
  region: 'allRegions',
  staff: 'allStaffs',
  ticket: 'allTickets',
};
/** Columns of customers that GraphQL asks for `*`. */
const EVERYTHING = 'id region name code credit born vip tags email ssn notes'.split(' ');

/** `select id from customer where region = 'south' order by id limit 3` as a connection of PostGraphile. */
function toGraphql(sql: string): string {
  const { table, columns, where, order, limit, offset } = parseSelect(sql);
  const field = FIELDS[table];
  if (field === undefined) throw new NotExpressible(sql);
  const conditions = where.map(({ column, value }) => `${camel(column)}: ${JSON.stringify(value)}`);
  const keys = order.map(({ column, descends }) => `${column.toUpperCase()}_${descends ? 'DESC' : 'ASC'}`);
  const args = [
    ...(where.length === 0 ? [] : [`condition: { ${conditions.join(', ')} }`]),
    ...(order.length === 0 ? [] : [`orderBy: [${keys.join(', ')}]`]),
    ...(limit === null ? [] : [`first: ${limit}`]),
    ...(offset === null ? [] : [`offset: ${offset}`]),
  ];
  const nodes = columns === '*' ? EVERYTHING : columns;
  const wanted = nodes === 'count' ? 'totalCount' : `nodes { ${nodes.map(camel).join(' ')} }`;
  return `{ ${field}${args.length === 0 ? '' : `(${args.join(', ')})`} { ${wanted} } }`;
}

function camel(name: string): string {
  return name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}
