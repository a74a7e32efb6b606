import { createHmac } from 'node:crypto';
import { type EndpointAnswer, type EndpointKind, type EndpointSession, NotExpressible } from '../endpoint.js';
import { CLERK_COLUMNS, rowsOf, run } from '../world.js';
import { objectsAnswer, parseSelect } from './http.js';
import { withRole } from './postgres.js';
import { newDirectory, ready, type StartedProcess, start, startForWorlds } from './process.js';

const [LOGIN, CLERK, ADMIN] = ['leakbench_graphile', 'leakbench_graphile_clerk', 'leakbench_graphile_admin'];
const SECRET = 'secret of the bench';

/** Row security by roles; PostGraphile logs in as one user, and takes the role from the caller's token. */
const SCRIPT = `${withRole(CLERK, withRole(ADMIN, ''))}
grant ${CLERK}, ${ADMIN} to ${LOGIN};
grant select on all tables in schema public to ${ADMIN};
${Object.entries(CLERK_COLUMNS)
  .map(
    ([table, columns]) => `
alter table ${table} enable row level security;
create policy clerk on ${table} for select to ${CLERK} using (${rowsOf(table)});
create policy admin on ${table} for select to ${ADMIN} using (true);
grant select (${columns.join(', ')}) on ${table} to ${CLERK};`,
  )
  .join('')}`;

/** Starts PostGraphile, by the command in `LEAKBENCH_POSTGRAPHILE`. */
async function startPostGraphile(owner: string, port: number): Promise<StartedProcess> {
  const url = Object.assign(new URL(owner), { username: LOGIN, password: 'clerk' }).href;
  const args = ['--connection', url, '--schema', 'public', '--host', '127.0.0.1', '--port', String(port)];
  const roles = ['--default-role', CLERK, '--jwt-secret', SECRET, '--jwt-role', 'role', '--no-ignore-rbac'];
  const command = process.env['LEAKBENCH_POSTGRAPHILE'] ?? 'npx --yes postgraphile@4';
  const more = ['--legacy-relations', 'omit', '--disable-graphiql', '--disable-query-log'];
  const running = await start(newDirectory('postgraphile'), command, [...args, ...roles, ...more]);
  const isUp = (): Promise<boolean> =>
    graphqlSession(`http://127.0.0.1:${port}/graphql`, null)
      .ask('{ __typename }')
      .then(
        ({ error }) => error === null,
        () => false,
      );
  await ready(running, isUp);
  return running;
}

/** A JSON Web Token of a role. */
function tokenOf(role: string): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const content = `${part({ alg: 'HS256', typ: 'JWT' })}.${part({ role, aud: 'postgraphile' })}`;
  return `${content}.${createHmac('sha256', SECRET).update(content).digest('base64url')}`;
}

export const POSTGRAPHILE: EndpointKind = {
  name: 'PostGraphile, row security',
  data: 'everything',
  start: async ({ owner }) => {
    const { ports, close } = await startForWorlds(async (world, port, onStart) => {
      await run(owner[world], withRole(LOGIN, SCRIPT));
      onStart(await startPostGraphile(owner[world], port));
    });
    return {
      what: 'PostGraphile 4 over row security',
      languages: ['graphql'],
      others: ['admin'],
      open: async (world, login, caller) => {
        if (login !== undefined) throw new NotExpressible('a request has no login but its token');
        const url = `http://127.0.0.1:${ports.get(world)}/graphql`;
        return graphqlSession(url, caller === 'admin' ? tokenOf(ADMIN) : null);
      },
      close,
    };
  },
};

/** Session that sends GraphQL, and the simple SELECTs for which PostGraphile's schema has a form. */
function graphqlSession(url: string, token: string | null): EndpointSession {
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

interface GraphqlReply {
  readonly data?: Readonly<Record<string, GraphqlConnection | null>> | null;
  readonly errors?: readonly { readonly message: string }[];
}

interface GraphqlConnection {
  readonly nodes?: readonly Readonly<Record<string, unknown>>[];
  readonly totalCount?: number;
}

function answerOf(response: Response, text: string): EndpointAnswer {
  const { data, errors } = JSON.parse(text) as GraphqlReply;
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
