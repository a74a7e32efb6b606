import { join } from 'node:path';
import { PACKAGE_ROOT, version } from '../../../base/package-root.js';
import { StartProblem } from '../../../base/start-problem.js';
import type { Service } from '../../../service/service.js';
import type { Settings } from '../../../service/settings.js';
import { type ConsoleOptions, consoleFiles, type DemoSignIn } from '../../../surfaces/console/index.js';

/** The built `console/`. */
const FOLDER = join(PACKAGE_ROOT, 'dist', 'console');

/** Options of this server's console; null if it is off. @throws StartProblem if it is not built */
export function consoleOf(
  settings: Settings,
  service: Pick<Service, 'logins'>,
  demo: DemoSignIn | null,
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
    demo,
    localTokens: settings.localTokens,
    wire: () => ({ port: wirePort(), tls: settings.tls.wire !== null }),
    logins: service.logins,
  };
}
