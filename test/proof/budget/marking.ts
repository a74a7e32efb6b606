import { createHttpServer } from '../../../src/surfaces/http/server.js';
import { startTestService } from '../../support/service.js';

/** A gateway in a process of its own, to be killed. */
// On the embedded engine: whoever opens its directory afterwards knows no variable of a native server.
const test = await startTestService({ embedded: true });
const rest = await createHttpServer(test.service, {});
const { port } = await rest.listen(0, '127.0.0.1');
process.send?.({
  port,
  auditDir: test.auditDir,
  policyFile: test.policyFile,
  token: await test.token('user:ann'),
});
