import { join } from 'node:path';
import { PACKAGE_ROOT, version } from '../../../base/package-root.js';
import { StartProblem } from '../../../base/start-problem.js';
import type { Service } from '../../../service/service.js';
import { isThisMachine } from '../../../service/settings/admin.js';
import type { Settings } from '../../../service/settings.js';
import { type ConsoleOptions, consoleFiles, type DemoSignIn } from '../../../surfaces/console/index.js';
import { openIssuer } from '../issuer.js';
import { DEMO_CALLERS } from './examples.js';

/** What `npm run build` makes of `console/`. */
const FOLDER = join(PACKAGE_ROOT, 'dist', 'console');

/** What the console of this server is served with; null where it is off. @throws StartProblem where it is not built */
export function consoleOf(
  settings: Settings,
  service: Pick<Service, 'logins'>,
  isDemo: boolean,
  wirePort: () => number,
): ConsoleOptions | null {
  if (settings.console === 'off') return null;
  const files = consoleFiles(FOLDER);
  if (!files.has('index.html'))
    throw new StartProblem(
      'the console is not built, which takes Node 20.19 or newer: run `npm run build`, or start with --console off',
    );
  return {
    files,
    admin: settings.console === 'admin',
    version: version(),
    demo: isDemo && isThisMachine(settings.host) && settings.localTokens ? demoSignIn(settings) : null,
    localTokens: settings.localTokens,
    wire: () => ({ port: wirePort(), tls: settings.tls.wire !== null }),
    logins: service.logins,
  };
}

/** As `osl token` does, for those whom the banner names. */
function demoSignIn(settings: Settings): DemoSignIn {
  return {
    callers: DEMO_CALLERS,
    mint: async (chain) => {
      const issuer = await openIssuer(settings, settings.policyFile);
      return (await issuer.mint({ chain, admin: true })).token;
    },
  };
}
