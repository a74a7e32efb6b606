/** The console: built pages at `/console`, served by the same port as REST. */
export { consoleFiles } from './files.js';
export type { ConsoleOptions, DemoSignIn } from './options.js';
export { CONSOLE_METHODS, consoleRoutes } from './route.js';
