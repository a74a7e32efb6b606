import { setTimeout } from 'node:timers/promises';
import type { Client } from 'pg';
import { connected } from '../support/client.js';
import type { Gateway } from '../support/gateway.js';

/** Latencies that an honest client observes, in ms; failures by SQLSTATE or reason. */
export interface Experience {
  /** Point queries on an open session, one every 10 ms. */
  readonly queries: readonly number[];
  /** Queries over all rows, which cannot share a session, one per second. */
  readonly long: readonly number[];
  /** Connecting, logging in and running one query, four times per second. */
  readonly logins: readonly number[];
  readonly failures: readonly string[];
}

const PACE_MS = 10;
const LOGIN_PACE_MS = 250;
/** Interval at which a client checks whether to stop. */
const LOOK_MS = 100;
const LONG_PACE_MS = 1_000;
/** Tokens expire after 300 s. */
const RENEW_PACE_MS = 60_000;

export interface Honest {
  /** Backend process id of the session that runs the point queries. */
  readonly processId: number;
  stop(): Promise<Experience>;
}

/** Starts three clients that run queries until they are stopped. */
export async function startHonest(gateway: Gateway, rows: number): Promise<Honest> {
  const queries: number[] = [];
  const long: number[] = [];
  const logins: number[] = [];
  const failures: string[] = [];
  let stopping = false;
  const paced = async (pace: number, into: number[], act: () => Promise<unknown>): Promise<void> => {
    while (!stopping) {
      const began = performance.now();
      try {
        await act();
        into.push(performance.now() - began);
      } catch (cause) {
        failures.push(reasonOf(cause));
      }
      while (!stopping && performance.now() - began < pace)
        await setTimeout(Math.min(LOOK_MS, Math.max(0, pace - (performance.now() - began))));
    }
  };
  const open = await connected(gateway);
  const other = await connected(gateway);
  const point = (client: Client) =>
    client.query('select balance from osl.entities.account where id = $1', [
      1 + Math.floor(Math.random() * rows),
    ]);
  const renew = async (): Promise<void> => {
    for (const client of [open, other]) await client.query(`set osl.token = '${await gateway.token()}'`);
  };
  const lives = Promise.all([
    paced(RENEW_PACE_MS, [], renew),
    paced(PACE_MS, queries, () => point(open)),
    paced(LONG_PACE_MS, long, () =>
      other.query('select region, count(*), sum(balance) from osl.entities.account group by region'),
    ),
    paced(LOGIN_PACE_MS, logins, async () => {
      const client = await connected(gateway);
      await point(client);
      await client.end();
    }),
  ]);
  return {
    processId: Number((open as unknown as { processID: number }).processID), // pg's types have no processID
    async stop() {
      stopping = true;
      await lives;
      await Promise.all([open.end(), other.end()]);
      return { queries, long, logins, failures };
    },
  };
}

function reasonOf(cause: unknown): string {
  if (cause instanceof Error && 'code' in cause) return String(cause.code);
  return cause instanceof Error ? cause.message : String(cause);
}
