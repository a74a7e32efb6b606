/** The console: built pages at `/console`, on the port of REST. */

export type { ConsoleOptions, DemoSignIn } from './route.js';
export { CONSOLE_METHODS, consoleFiles, consoleRoutes } from './route.js';
