import type { Runner } from './runner.js';

const HEALTHY_MS = 2_000;

/** Whether a governed session answers in time. */
export async function isHealthy(runner: Runner): Promise<boolean> {
  const statement = { sql: 'SELECT 1::pg_catalog.int4', parameterOids: [], columnOids: [23] };
  const options = {
    subject: null,
    resultFormats: [],
    maxRows: 0,
    maxBytes: 0,
    timeoutMs: HEALTHY_MS,
    signal: null,
  };
  try {
    const result = await runner.runStatement(statement, [], options, { write: () => undefined });
    return result.rows === 1;
  } catch {
    return false;
  }
}
