import { INSTALLATION_ROOT } from '../../src/base/package-root.js';
import { StartProblem } from '../../src/base/start-problem.js';
import { indexContent } from '../../src/service/indexing/index-content.js';
import type { OpenService } from '../../src/service/open.js';
import { isLoopbackHost, type Settings } from '../../src/service/settings.js';
import { demoSignIn } from '../../src/surfaces/console/demo.js';
import { ensureDemo } from '../demo/load.js';
import { openIssuer } from '../issuer.js';
import type { Progress } from '../output.js';
import { DEMO_CALLERS } from './examples.js';
import { asStartProblem, type Demo } from './server.js';

export const DEMO: Demo = Object.freeze({
  load,
  signIn: (settings: Settings) =>
    isLoopbackHost(settings.host) && settings.localTokens
      ? demoSignIn(DEMO_CALLERS, async (chain) => {
          const issuer = await openIssuer(settings, settings.policyFile);
          return (await issuer.mint({ chain, admin: true })).token;
        })
      : null,
});

async function load(
  { service, databases }: OpenService,
  settings: Settings,
  progress: Progress,
): Promise<void> {
  const engine = databases.get(service.defaultConnector);
  if (engine === undefined) throw new StartProblem('the demo has no connector');
  await asStartProblem(
    ensureDemo(engine.system, INSTALLATION_ROOT, (step, done, total) =>
      progress.step(step === 'read' ? 'reading packages' : 'loading rows', done, total),
    ),
    settings,
  );
  const { manifest } = service.model();
  await asStartProblem(
    indexContent(manifest, databases, settings.content, [], (p) =>
      progress.step(`indexing ${p.facet} ${p.version}`, p.done, p.total),
    ),
    settings,
  );
}
