import { parentPort } from 'node:worker_threads';
import { ready } from 'osl-compiler';
import { stackOf } from '../../src/base/thrown.js';
import { functionEntries } from '../../src/model/graph/language.js';
import type { CheckReply, CheckRequest, CheckResults, CheckTask } from './check.js';
import { check, questionFaults, type ValidModel } from './check.js';
import { visibilityText } from './visibility.js';

/** Compiles edited files off the thread that talks to the editor. */

const port = parentPort;
if (port === null) throw new Error('this file is the main module of a worker');

/** Last valid model by manifest file, used for hovers while the current one is invalid. */
const sound = new Map<string, ValidModel>();

await ready();
let last: Promise<void> = Promise.resolve();
port.on('message', ({ id, task }: CheckRequest) => {
  last = last.then(async () => port.postMessage(await answered(id, task)));
});

async function answered(id: number, task: CheckTask): Promise<CheckReply> {
  try {
    return { id, result: await done(task) };
  } catch (error) {
    return { id, failed: stackOf(error) };
  }
}

async function done(task: CheckTask): Promise<CheckResults[CheckTask['kind']]> {
  switch (task.kind) {
    case 'check': {
      const checked = await check(task.project, new Map(task.open));
      const { manifestFile } = task.project;
      // If only the policy is invalid now, keep its last valid version.
      const before = sound.get(manifestFile);
      if (checked.sound !== null)
        sound.set(manifestFile, {
          ...checked.sound,
          snapshot: checked.sound.snapshot ?? before?.snapshot ?? null,
        });
      return { diagnostics: checked.diagnostics, names: checked.names, functions: functionEntries() };
    }
    case 'visibility': {
      const model = sound.get(task.manifestFile);
      return model === undefined ? null : visibilityText(task.object, model);
    }
    case 'questions': {
      const model = sound.get(task.manifestFile);
      return model === undefined ? null : questionFaults(task.text, model, task.subject);
    }
  }
}
