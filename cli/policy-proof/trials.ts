import type { PolicyTests } from '../policy-tests/document.js';
import type { TestService } from '../policy-tests/test-service.js';
import type { Trial } from './decide.js';

/** Runs counterexamples one after the other, on an embedded database that is opened for the first one. */
export function openTrials(files: Pick<PolicyTests, 'manifestFile' | 'policyFile'>): {
  readonly run: Trial;
  close(): Promise<void>;
} {
  let opened: Promise<TestService> | null = null;
  let last: Promise<unknown> = Promise.resolve();
  return {
    run: (counterexample) => {
      opened ??= open(files);
      const stand = opened;
      const result = last.then(async () => {
        const { trial } = await import('./replay.js');
        return trial(counterexample, await stand);
      });
      last = result.catch(() => undefined);
      return result;
    },
    close: async () => (await opened)?.close(),
  };
}

async function open(files: Pick<PolicyTests, 'manifestFile' | 'policyFile'>): Promise<TestService> {
  const { openTestService } = await import('../policy-tests/test-service.js');
  return openTestService({ ...files, data: new Map() });
}
