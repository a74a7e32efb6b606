import { type Test, test } from 'tap';
import { NO_NATIVE, startNativePostgres } from '../../support/native-postgres.js';
import type { TestServiceOptions } from '../../support/service.js';

/** Runs a test with a service over the embedded engine, then with one over a native server. */
export function onBothEngines(
  name: string,
  run: (t: Test, options: TestServiceOptions) => Promise<void>,
): void {
  test(`${name}, from the embedded engine`, (t) => run(t, {}));
  test(`${name}, from a native server`, async (t) => {
    const postgres = await startNativePostgres();
    if (postgres === null) {
      t.plan(0, NO_NATIVE);
      return;
    }
    t.teardown(() => postgres.stop());
    await run(t, { postgres });
  });
}
