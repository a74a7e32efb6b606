import { createHmac } from 'node:crypto';
import { type EndpointKind, NotExpressible } from '../endpoint.js';
import { CLERK_COLUMNS, rowsOf, run } from '../world.js';
import { graphqlSession } from './graphql.js';
import { withRole } from './postgres.js';
import { newDirectory, type Running, ready, start } from './process.js';
import { startForWorlds } from './world-servers.js';

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
async function startPostGraphile(owner: string, port: number): Promise<Running> {
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
