import { parentPort } from 'node:worker_threads';
import { ready } from 'osl-compiler';
import { stackOf } from '../../src/base/thrown.js';
import { functionEntries } from '../../src/model/graph/language.js';
import { check, type SoundModel } from './check.js';
import type { CheckReply, CheckRequest, CheckResults, CheckTask } from './messages.js';
import { questionFaults } from './messages.js';
import { sightsText } from './sights.js';

/** The thread that compiles what is being edited; the one that speaks with the editor never does. */

const port = parentPort;
if (port === null) throw new Error('this file is the main module of a worker');

/** Of each manifest, by its file: the last one that was right, which hovers are about while it is not. */
const sound = new Map<string, SoundModel>();

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
      // A policy that is wrong now was right before: who may see what is told by that one.
      const before = sound.get(manifestFile);
      if (checked.sound !== null)
        sound.set(manifestFile, {
          ...checked.sound,
          snapshot: checked.sound.snapshot ?? before?.snapshot ?? null,
        });
      return { diagnostics: checked.diagnostics, names: checked.names, functions: functionEntries() };
    }
    case 'sights': {
      const model = sound.get(task.manifestFile);
      return model === undefined ? null : sightsText(task.object, model);
    }
    case 'questions': {
      const model = sound.get(task.manifestFile);
      return model === undefined ? null : questionFaults(task.text, model, task.subject);
    }
  }
}
