/** A bug that is planted in a copy of the gateway, to see that the simulator finds it. */
export interface PlantedBug {
  readonly name: string;
  /** Source file, relative to the root. */
  readonly file: string;
  /** Text that stands in it exactly once. */
  readonly from: string;
  readonly to: string;
}

export const BUGS: readonly PlantedBug[] = [
  {
    name: 'rows leave before the decision is recorded',
    file: 'src/ask/data/ask.ts',
    from: 'durable ? sink.write(dataRows, rows) : ready.then(() => sink.write(dataRows, rows)),',
    to: 'sink.write(dataRows, rows),',
  },
  {
    name: 'the fast lane answers before the decision is recorded',
    file: 'src/ask/routes/fast-question.ts',
    from: "this.#streaming !== null || recorded === 'waiting') return;",
    to: 'this.#streaming !== null) return;',
  },
  {
    name: 'a group of records counts as durable when its write begins',
    file: 'audit/file-store.ts',
    from: 'else writeFully(this.#write, handle.fd, group, length, at, written);',
    to: '{ written(null); writeFully(this.#write, handle.fd, Buffer.from(group), length, at, () => undefined); }',
  },
  {
    name: 'segments are not opened for synced writes',
    file: 'audit/file-store.ts',
    from: "constants.O_RDWR | (this.#sync === 'disk' ? constants.O_DSYNC : 0)",
    to: 'constants.O_RDWR',
  },
  {
    name: 'a short write counts as a whole one',
    file: 'audit/disk.ts',
    from: 'else if (offset >= length) done(null);',
    to: 'else if (offset > 0) done(null);',
  },
  {
    name: 'a torn tail stays in the log',
    file: 'audit/file-store.ts',
    from: 'if (end === bytes.length) return null;',
    to: 'if (end <= bytes.length) return null;',
  },
  {
    name: 'two groups of records share one buffer',
    file: 'audit/epoch.ts',
    from: 'this.#filling = this.#syncing;\n    this.#syncing = group;',
    to: 'this.#syncing = group;',
  },
  {
    name: 'the outcome of a cancelled question is not recorded',
    file: 'src/ask/routes/fast-question.ts',
    from: "this.#request.recordFailure({\n      outcome: cancelled ? 'cancelled' : 'error',",
    to: "if (!cancelled) this.#request.recordFailure({\n      outcome: 'error',",
  },
  {
    name: 'an outcome is recorded twice',
    file: 'src/ask/routes/fast-question.ts',
    from: 'this.#request.recordAnswer(this.#count, rows.length, this.#source);',
    to: 'this.#request.recordAnswer(this.#count, rows.length, this.#source);\n      this.#request.recordAnswer(this.#count, rows.length, this.#source);',
  },
  {
    name: 'a session is reused while a cancel request is under way',
    file: 'src/engine/upstream-session.ts',
    from: 'const cancelling = this.#cancelling;\n    if (cancelling === null) return null;',
    to: 'const cancelling = this.#cancelling;\n    this.#cancelling = null;\n    if (cancelling !== null) return null;\n    if (cancelling === null) return null;',
  },
  {
    name: 'a session is given back twice',
    file: 'src/engine/pool.ts',
    from: '      this.#takeBack(session);\n      this.#idle.push(session);\n      this.#serve();\n      return;',
    to: '      this.#takeBack(session);\n      this.#idle.push(session, session);\n      this.#serve();\n      return;',
  },
  {
    name: 'a lost session stays lent',
    file: 'src/engine/pool.ts',
    from: '    this.#all.delete(session);\n    this.#takeBack(session);',
    to: '    this.#all.delete(session);',
  },
  {
    name: 'answers of a shared session come in the wrong order',
    file: 'src/engine/upstream-session.ts',
    from: '      this.#jobs.shift();\n      this.#allowance',
    to: '      this.#jobs.splice(this.#jobs.length > 2 ? 1 : 0, 1);\n      this.#allowance',
  },
  {
    name: 'a time zone outlives its statement',
    file: 'src/engine/settings.ts',
    from: '+ 1}, true)`',
    to: '+ 1}, false)`',
  },
  {
    name: 'a statement runs again although rows were delivered',
    file: 'src/engine/execution.ts',
    from: "return this.lane === 'shared' || this.rowCount === 0;",
    to: 'return true;',
  },
  {
    name: 'the answer cache forgets the format of an answer',
    file: 'src/ask/data/answer-cache.ts',
    from: 'formatAt(resultFormats, i)}`',
    to: 'formatAt([], i)}`',
  },
  {
    name: 'the answer cache forgets the values of a statement',
    file: 'src/ask/data/answer-cache.ts',
    from: "    add(bytes ?? '');",
    to: "    if (i > 0) add(bytes ?? '');",
  },
  {
    name: 'the answer cache forgets the time zone',
    file: 'src/ask/data/answer-cache.ts',
    from: '    add(name);\n    add(value);',
    to: '    void [name, value];',
  },
  {
    name: 'the plan cache forgets rights for texts of a known shape',
    file: 'src/ask/data/plan-cache.ts',
    from: 'return `s ',
    to: "if (rights !== '') return `s ` + shape;\n  return `s ",
  },
  {
    name: 'a prepared statement keeps its rights',
    file: 'src/ask/routes/questions.ts',
    from: 'return this.#route?.route.isFor(caller) === true ? this.#route : null;',
    to: 'return this.#route;',
  },
  {
    name: 'a session keeps its routes over a reload',
    file: 'src/ask/routes/questions.ts',
    from: '      caller.model !== this.#parts.model() ||\n',
    to: '',
  },
  {
    name: 'a cancel request stops the next statement',
    file: 'wire/session.ts',
    from: '    if (!this.#busy) return;\n    try {',
    to: '    if (!this.#busy) {\n      setTimeout(() => this.cancel(), 3);\n      return;\n    }\n    try {',
  },
  {
    name: 'ended sessions stay in the register',
    file: 'wire/server.ts',
    from: 'void done.then(() => all.delete(connection));',
    to: 'void done.then(() => connection.remoteAddress === "" && all.delete(connection));',
  },
  {
    name: 'a request stays when its client disconnects',
    file: 'src/surfaces/rest/inflight.ts',
    from: '      this.#running.delete(controller);\n',
    to: '      if (!controller.signal.aborted) this.#running.delete(controller);\n',
  },
  {
    name: 'a new policy serves with the old manifest',
    file: 'src/service/serving.ts',
    from: '  serve(next: ServedModel): void {\n    this.#policy.noteValid();\n    this.#replace(next);',
    to: '  serve(next: ServedModel): void {\n    this.#policy.noteValid();\n    const before = this.#model;\n    setTimeout(() => this.#replace(next), 4);\n    this.#replace(before.underPolicy(next.snapshot));',
  },
  {
    name: 'the values of the question before are sent',
    file: 'src/engine/short.ts',
    from: 'out.bind(execution.prepared.name, execution.values, execution.resultFormats);',
    to: 'const { last = execution.values } = this as unknown as { last?: typeof execution.values };\n    Object.assign(this, { last: execution.values });\n    out.bind(execution.prepared.name, last, execution.resultFormats);',
  },
  {
    name: 'a gateway goes on under its policy while nobody answers for it',
    file: 'src/service/follow-control.ts',
    from: 'if (isSilent || !control.isSilent) return;',
    to: 'if (isSilent || !control.isSilent || log !== null) return;',
  },
  {
    name: 'a revocation is in force only when its file is read',
    file: 'src/service/revocations.ts',
    from: '    this.revoked.add([revocation]);\n',
    to: '',
  },
  {
    name: 'a gateway does not learn of revocations by others',
    file: 'src/service/control.ts',
    from: '      await this.#revocationFiles.write(revocation, false);\n',
    to: '      void revocation;\n',
  },
  // Bugs that the simulator found in the gateway.
  {
    name: 'a BEGIN that is refused leaves a failed block',
    file: 'src/surfaces/pg/session-command.ts',
    from: 'if (opensBlock) state.abandonBlock();',
    to: 'void opensBlock;',
  },
  {
    name: 'a client that has gone is an internal error',
    file: 'src/surfaces/pg/session-requests.ts',
    from: "throw cause.sqlstate === CLIENT_GONE ? queryError('cancelled', {}) : cause;",
    to: 'throw cause;',
  },
  {
    name: 'a time zone that the database cannot resolve is an internal error',
    file: 'src/surfaces/pg/session-command.ts',
    from: 'throw reason instanceof QueryError ? records.refusal(reason) : reason;',
    to: 'throw [records, reason][1];',
  },
];
