// The program of the page.
"use strict";
