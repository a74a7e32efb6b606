import { join } from 'node:path';
import type { Test } from 'tap';
import { PACKAGE_ROOT } from '../../../src/base/package-root.js';
import { demoSignIn } from '../../../src/surfaces/console/demo.js';
import { type ConsoleOptions, consoleFiles } from '../../../src/surfaces/console/route.js';
import { type RestFixture, startRest } from '../../surfaces/rest/fixture.js';

export interface Gateway {
  readonly rest: RestFixture;
  /** `http://127.0.0.1:PORT` */
  readonly origin: string;
}

type Options = Parameters<typeof startRest>[0];

/** Who may be chosen at the console of the tests. */
const CALLERS = ['user:ann', 'user:ada', 'user:root'].map((name) => ({
  chain: [name],
  about: `as ${name}`,
}));

export function consoleOptions(over: Partial<ConsoleOptions> = {}): ConsoleOptions {
  return {
    files: consoleFiles(join(PACKAGE_ROOT, 'dist', 'console')),
    admin: true,
    version: '0',
    demo: null,
    localTokens: true,
    wire: () => ({ port: 0, tls: false }),
    logins: () => [],
    ...over,
  };
}

/** A real gateway over the shop, with a console where one may choose who asks, as on the demo. */
export async function startGateway(
  t: Pick<Test, 'teardown'>,
  options: Options = {},
  callers: readonly { readonly chain: readonly string[]; readonly about: string }[] = CALLERS,
): Promise<Gateway> {
  let rest: RestFixture | null = null;
  const demo = demoSignIn(callers, async (chain) => {
    if (rest === null) throw new Error('the gateway does not listen yet');
    const subject = chain.at(-1) ?? '';
    const snapshot = rest.test.service.model().snapshot;
    const roles = [...(snapshot?.subjects.get(subject)?.adminCeiling ?? [])];
    return rest.test.token(subject, { chain, roles });
  });
  rest = await startRest({ console: consoleOptions({ demo }), ...options });
  const { close, port } = rest;
  t.teardown(() => close());
  return { rest, origin: `http://127.0.0.1:${port}` };
}
